"""The probe: which steps of a model are looked at, and where what they hold is written."""
import contextlib

from aloft_probe.functions import FunctionCalls
from aloft_probe.modules import ModuleHooks
from aloft_probe.step import LEVELS, Step

TASKS = ("statistics", "tensor")


class Probe:
    """Looks into the training steps of `model` and writes out/stepN/rank/{dump,construct,stack}.json.

    task: "statistics", or "tensor" for all elements, too (torch.save, dump_tensor_data/*.pt).
    level: "module", "op" (torch's functions) or "mix" (both).
    at: the steps that are written, counted from 0; None: every one.

        probe = Probe(model, "probed", at=[0, 99])
        for x, y in data:
            with probe.step():
                loss(model(x), y).backward()
            optimizer.step()
    """

    def __init__(self, model, out, task="statistics", level="module", at=None):
        if task not in TASKS:
            raise ValueError(f"task is {task!r}: one of {', '.join(TASKS)}")
        if level not in LEVELS:
            raise ValueError(f"level is {level!r}: one of {', '.join(LEVELS)}")
        self.out, self.task, self.level = str(out), task, level
        self.at = None if at is None else set(at)
        self.number = 0
        self.current = None
        self.functions = FunctionCalls(lambda: self.current) if level != "module" else None
        self.modules = ModuleHooks(model, lambda: self.current) if level != "op" else None

    @contextlib.contextmanager
    def step(self):
        """A training step, forward and backward. Its files are written when it ends without an exception."""
        if self.current is not None:
            raise RuntimeError("a step of the probe is open already")
        is_due = self.at is None or self.number in self.at
        try:
            if is_due:
                self.current = Step(self.out, self.number, self.task, self.level)
            with self.functions if self.functions and is_due else contextlib.nullcontext():
                yield
            gathered, self.current = self.current, None
            if gathered is not None:
                gathered.write()
            self.number += 1
        finally:
            self.current = None
            if self.modules:
                self.modules.step_is_over()

    def remove(self):
        """Takes the hooks off the model."""
        if self.modules:
            self.modules.remove()
