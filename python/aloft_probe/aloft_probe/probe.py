"""The probe: which steps of a model are looked at, and where what they hold is written."""
import contextlib

from aloft_probe import refused
from aloft_probe.functions import FunctionCalls
from aloft_probe.modules import ModuleHooks
from aloft_probe.optimizers import OptimizerHooks
from aloft_probe.step import LEVELS, Step

TASKS = ("statistics", "tensor")


class Probe:
    """Looks into the training steps of `model` and writes out/stepN/rank/{dump,construct,stack}.json.

    task: "statistics", or "tensor" for all elements, too (torch.save, dump_tensor_data/*.pt).
    level: "module", "op" (torch's functions) or "mix" (both).
    at: the steps that are written, counted from 0; None: every one.
    optimizer: one of torch.optim, or a list of them: what it adds to parameters is written, too, with its rate and
        the norm of the gradients that it takes. Its step() then belongs inside of step().
    scaler: a torch.amp.GradScaler, whose scale is written, and which may leave a step out.

        probe = Probe(model, "probed", at=[0, 99], optimizer=optimizer)
        for x, y in data:
            with probe.step():
                probe.loss(loss(model(x), y)).backward()
                optimizer.step()
            optimizer.zero_grad()

    TypeError of a model that the probe cannot see into: one that was compiled, or DataParallel.
    """

    def __init__(self, model, out, task="statistics", level="module", at=None, optimizer=None, scaler=None):
        if task not in TASKS:
            raise ValueError(f"task is {task!r}: one of {', '.join(TASKS)}")
        if level not in LEVELS:
            raise ValueError(f"level is {level!r}: one of {', '.join(LEVELS)}")
        if scaler is not None and optimizer is None:
            raise ValueError("a scaler without its optimizer: pass optimizer, too")
        refused.check(model)
        self.model, self.scaler = model, scaler
        self.out, self.task, self.level = str(out), task, level
        self.at = None if at is None else set(at)
        self.number = 0
        self.current = None
        self.functions = FunctionCalls(lambda: self.current) if level != "module" else None
        self.modules = ModuleHooks(model, lambda: self.current) if level != "op" else None
        optimizers = optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]
        self.optimizers = OptimizerHooks(model, optimizers, lambda: self.current) if optimizer is not None else None

    @contextlib.contextmanager
    def step(self):
        """A training step: forward and backward, and the optimizer's step where the probe knows of it. Its files are
        written when it ends without an exception."""
        if self.current is not None:
            raise RuntimeError("a step of the probe is open already")
        is_due = self.at is None or self.number in self.at
        if is_due:
            refused.check(self.model)  # compiled since the probe was made
        try:
            if is_due:
                self.current = Step(self.out, self.number, self.task, self.level)
                if self.scaler is not None:
                    self.current.training["loss_scale"] = float(self.scaler.get_scale())
            with self.functions if self.functions and is_due else contextlib.nullcontext():
                yield
            if self.optimizers:
                self.optimizers.step_is_over(self.current, self.scaler is not None)
            gathered, self.current = self.current, None
            if gathered is not None:
                gathered.write()
            self.number += 1
        finally:
            self.current = None
            if self.modules:
                self.modules.step_is_over()
            if self.optimizers:
                self.optimizers.forget()

    def loss(self, loss):
        """The step's loss, or that of each of its micro-batches, whose mean is written. Gives the same tensor."""
        if self.current is not None:
            self.current.losses.append(loss.detach().clone())
        return loss

    def remove(self):
        """Takes the hooks off the model and the optimizer."""
        for hooks in (self.modules, self.optimizers):
            if hooks:
                hooks.remove()
