"""What was seen in a step: entries by name, in the order in which calls ended."""
import os

from aloft_probe import files, stacks
from aloft_probe.records import Recorder

LEVELS = {"module": "L0", "op": "L1", "mix": "mix"}


class Step:
    """Gathers the records of a step; write() makes its folder."""

    def __init__(self, out, number, task, level):
        self.task, self.level = task, level
        self.folder = files.emptied(files.folder_of(out, number))
        self.tensors = None
        if task == "tensor":
            self.tensors = os.path.join(self.folder, "dump_tensor_data")
            os.makedirs(self.tensors)
        self.recorder = Recorder(self.save if self.tensors else None)
        self.data, self.parents, self.lines = {}, {}, {}
        self.calls = {}  # of each name so far
        self.open = []  # entries of modules whose calls have not ended

    def save(self, name, t):
        return files.save_tensor(self.tensors, name, t)

    def next_call(self, name):
        number = self.calls.get(name, 0)
        self.calls[name] = number + 1
        return number

    def begin(self, entry):
        """A call begins: who called it, and from where."""
        self.parents[entry] = self.open[-1] if self.open else None
        self.lines[entry] = stacks.current()

    def gradient(self, entry, side, index, t):
        """Puts the gradient at its place of a backward entry: side is "input" or "output"."""
        record = self.recorder.tensor(t, f"{entry}.{side}.{index}")
        both = self.data.setdefault(entry, {"input": [], "output": []})
        both[side] += [None] * (index + 1 - len(both[side]))
        both[side][index] = record
        if entry not in self.parents:
            forward = entry.replace(".backward", ".forward")
            parent = self.parents.get(forward)
            self.parents[entry] = parent.replace(".forward", ".backward") if parent else None

    def write(self):
        self.recorder.finish()
        files.put_json(self.folder, "construct.json", self.parents if self.level != "op" else {})
        files.put_json(self.folder, "stack.json", stacks.as_json(self.lines))
        files.put_json(self.folder, "dump.json", {
            "task": self.task, "level": LEVELS[self.level], "framework": "pytorch",
            "dump_data_dir": os.path.abspath(self.tensors) if self.tensors else None, "data": self.data})
