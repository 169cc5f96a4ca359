"""What was seen in a step: entries by name, in the order in which calls ended."""
import os

from aloft_probe import files, stacks
from aloft_probe.entries import direction_of, turned
from aloft_probe.gradients import Reads
from aloft_probe.records import Recorder, as_json

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
        self.reads = Reads()
        self.data, self.parents, self.lines = {}, {}, {}
        self.calls = {}  # of each name so far
        self.training = {}  # what the loop says of the step, by name
        self.has_pass_gradients = False  # a backward pass has reached parameters
        self.is_compiled = False  # calls were read by torch.compile
        self.losses, self.taken_norms = [], []  # on their devices
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

    def gradient(self, entry, side, place, t):
        """Puts the gradient at its place of a backward entry: side is "input" or "output", the place a number, or
        several where it lies within tuples."""
        places = place if isinstance(place, tuple) else (place,)
        record = self.recorder.tensor(t, f"{entry}.{side}." + ".".join(map(str, places)))
        own_list = self.data.setdefault(entry, {"input": [], "output": []})[side]
        for depth, index in enumerate(places):
            own_list += [None] * (index + 1 - len(own_list))
            if depth + 1 < len(places):
                own_list[index] = own_list[index] or []
                own_list = own_list[index]
        own_list[index] = record
        if entry not in self.parents:
            parent = self.parents.get(turned(entry, "forward"))
            self.parents[entry] = turned(parent, "backward") if parent else None

    def has_gradient(self, entry, own):
        return bool(self.data.get(f"{entry}.parameters_grad.0", {}).get(own))

    def expect_parameter_gradient(self, entry, own):
        """Keeps the place of one that is looked at later."""
        self.data.setdefault(f"{entry}.parameters_grad.0", {}).setdefault(own, None)

    def parameter_gradient(self, entry, own, t):
        """The gradient of a parameter as it stands; what was seen of it before in the step is replaced."""
        entry = f"{entry}.parameters_grad.0"
        own_records = self.data.setdefault(entry, {})
        if own_records.get(own):
            self.recorder.forget(own_records[own][0])
        own_records[own] = [self.recorder.tensor(t, f"{entry}.{own}")]

    def update(self, entry, own, t):
        """What an optimizer has added to a parameter."""
        call = self.next_call(f"{entry}.parameters_update {own}")
        entry = f"{entry}.parameters_update.{call}"
        self.data.setdefault(entry, {})[own] = [self.recorder.statistics(t)]

    def finish_training(self):
        """The numbers of the loop, which had stayed on their devices."""
        if self.losses:
            self.training["losses"] = len(self.losses)
            self.training["loss"] = as_json(sum(float(v) for v in self.losses) / len(self.losses))
        if self.taken_norms:
            self.training["gradient_norm"] = as_json(sum(float(n) ** 2 for n in self.taken_norms) ** 0.5)

    def drop_what_did_not_come(self):
        for entry in [entry for entry in self.data if direction_of(entry) == "parameters_grad"]:
            self.data[entry] = {own: records for own, records in self.data[entry].items() if records}
            if not self.data[entry]:
                del self.data[entry]

    def write(self):
        self.drop_what_did_not_come()
        self.recorder.finish()
        self.finish_training()
        files.put_json(self.folder, "construct.json", self.parents if self.level != "op" else {})
        files.put_json(self.folder, "stack.json", stacks.as_json(self.lines))
        files.put_json(self.folder, "dump.json", {
            "task": self.task, "level": LEVELS[self.level], "framework": "pytorch",
            "dump_data_dir": os.path.abspath(self.tensors) if self.tensors else None,
            **({"training": self.training} if self.training else {}), "data": self.data})
