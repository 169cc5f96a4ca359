"""The probe: which steps of a model are looked at, and where what they hold is written."""
import contextlib
import os

import torch

from aloft_probe import files, refused, warned
from aloft_probe.folder_lock import FolderLock
from aloft_probe.functions import FunctionCalls
from aloft_probe.modules import ModuleHooks
from aloft_probe.optimizers import OptimizerHooks
from aloft_probe.passes import BackwardPasses
from aloft_probe.step import LEVELS, Step

TASKS = ("statistics", "tensor")


class Probe:
    """Looks into the training steps of `model` and writes out/stepN/rank/{dump,construct,stack}.json.

    task: "statistics", or "tensor" for all elements, too (torch.save, dump_tensor_data/*.pt).
    level: "module" (msprobe's L0), "op" (L1: torch's functions) or "mix" (both).
    at: the steps that are written, counted from 0, [0, 4] or "0,4-6"; None: every one.
    optimizer: one of torch.optim, or a list of them: what it adds to parameters is written, too, with its rate and
        the norm of the gradients that it takes. Its step() then belongs inside of step().
    scaler: a torch.amp.GradScaler, whose scale is written, and which may leave a step out.

        probe = Probe(model, "probed", at=[0, 99], optimizer=optimizer)
        for x, y in data:
            with probe.step():
                probe.loss(loss(model(x), y)).backward()
                optimizer.step()
            optimizer.zero_grad()

    TypeError of what is no model, and of one that the probe cannot see into: one that was compiled, or DataParallel;
    ValueError of steps that there are not, and of an optimizer of another model; FileExistsError, at the first step,
    of a folder that holds the steps of another run, and BlockingIOError of one that another probe writes into. What a loop leaves out, so that less
    is written than it asks for, is a RuntimeWarning: step() without `with`, loss() or the optimizer's step outside of
    it, no backward(), a step of `at` that was never made, two probes that write into one folder.
    """

    def __init__(self, model, out, task="statistics", level="module", at=None, optimizer=None, scaler=None):
        if task not in TASKS:
            raise ValueError(f"task is {task!r}: one of {', '.join(TASKS)}")
        level = {"L0": "module", "L1": "op"}.get(level, level)  # msprobe's words
        if level not in LEVELS:
            raise ValueError(f"level is {level!r}: one of {', '.join(LEVELS)}, or L0, L1")
        if scaler is not None and optimizer is None:
            raise ValueError("a scaler without its optimizer: pass optimizer, too")
        if scaler is not None and not hasattr(scaler, "get_scale"):
            raise TypeError(f"the scaler is a {type(scaler).__name__}, and not a torch.amp.GradScaler")
        refused.check(model)
        at = refused.steps(at)
        self.model, self.scaler = model, scaler
        self.out, self.task, self.level = str(out), task, level
        self.at = at
        self.number = 0
        self.has_written = False
        self.lock = None  # of the folder, from the first step that is written
        self.is_told = False  # that a step had no backward pass
        self.is_open = False  # within a step, be it one that is written or not
        self.current = None
        self.functions = FunctionCalls(lambda: self.current) if level != "module" else None
        optimizers = optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]
        optimizers = [refused.unwrapped(one) for one in optimizers]
        self.modules = ModuleHooks(model, lambda: self.current) if level != "op" else None
        see_gradients = self.modules.look_at_own_gradients if self.modules else lambda: None
        self.optimizers = None
        if optimizer is not None:
            self.optimizers = OptimizerHooks(model, optimizers, lambda: self.current, see_gradients)
        self.unasked = warned.StepsNotMade(at)
        warned.of_folder(self)

    def step(self):
        """A training step: forward and backward, and the optimizer's step where the probe knows of it. Its files are
        written when it ends without an exception. To be entered: `with probe.step():`."""
        return warned.Entered(self.gathered())

    @contextlib.contextmanager
    def gathered(self):
        if self.is_open:
            raise RuntimeError("a step of the probe is open already")
        is_due = self.at is None or self.number in self.at
        if is_due:
            refused.check(self.model)  # compiled since the probe was made
            if not self.has_written:
                files.refuse_old_dump(self.out)
                if self.lock is None:
                    self.lock = FolderLock(self.out, os.path.basename(files.folder_of(self.out, 0)))
                files.remove_unfinished(self.out)
        self.is_open = True
        try:
            if is_due:
                self.current = Step(self.out, self.number, self.task, self.level)
                if self.scaler is not None:
                    self.current.training["loss_scale"] = float(self.scaler.get_scale())
                if self.modules:
                    self.modules.step_begins()
            with contextlib.ExitStack() as looks:
                if is_due:
                    looks.enter_context(BackwardPasses(self.current.reads))
                    if self.functions:
                        looks.enter_context(self.functions)
                yield
            if self.modules:
                self.modules.step_ends()
            if self.optimizers:
                self.optimizers.step_is_over(self.current, self.scaler is not None)
            gathered, self.current = self.current, None
            if gathered is not None:
                refused.check_step(gathered)
                warned.of_calls(gathered)
                warned.of_gradients(gathered)
                warned.of_passes(gathered)
                if not self.is_told and warned.of_no_backward(gathered):
                    self.is_told = True
                gathered.write()
                self.has_written = True
            self.number += 1
            self.unasked.made = self.number
        finally:
            self.current, self.is_open = None, False
            if self.modules:
                self.modules.step_is_over()
            if self.optimizers:
                self.optimizers.forget()

    def loss(self, loss):
        """The step's loss, or that of each of its micro-batches, whose mean is written. Gives the same tensor."""
        refused.check_loss(loss)
        if not self.is_open:
            warned.say("probe.loss() was called outside of `with probe.step():`, so that the loss is not written: "
                       "the forward pass, the loss and backward() belong inside of it")
        elif self.current is not None:
            with torch._C.DisableTorchFunction():  # this is no call of the model
                self.current.losses.append(loss.detach().clone())
        return loss

    def remove(self):
        """Takes the hooks off the model and the optimizer."""
        warned.forget_folder(self)
        if self.lock:
            self.lock.release()
            self.lock = None
        self.unasked.tell()
        for hooks in (self.modules, self.optimizers):
            if hooks:
                hooks.remove()
