"""What stands in dump.json for a value: tensors with their statistics, other values as msprobe has them."""
import dataclasses
import math

import torch

from aloft_probe import statistics
from aloft_probe.attempts import attempt
from aloft_probe.gradients import DEEPEST, is_plain


class Recorder:
    """Makes records, and fills in their numbers once a step is over.

    `save`: called as save(name, tensor) for each tensor, gives the name of its file, or None where
    tensors are not kept.
    """

    def __init__(self, save=None):
        self.save = save
        self.recent = statistics.Recent()
        self.waiting = {}  # {id of a record: (record, statistics on the device)}

    def statistics(self, t):
        """The record of a tensor, of which no file is kept."""
        record = {"type": "torch.Tensor", "dtype": str(t.dtype), "shape": shape_of(t), "Max": None, "Min": None,
                  "Mean": None, "Norm": None, "requires_grad": t.requires_grad}
        with torch.no_grad():
            self.waiting[id(record)] = (record, attempt(self.recent.taken, t))
        return record

    def tensor(self, t, name):
        record = self.statistics(t)
        if self.save is not None and is_plain(t):
            with torch.no_grad():
                own = attempt(self.save, name, t)
            if own is not None:
                record["data_name"] = own
        return record

    def forget(self, record):
        """The record is no longer wanted."""
        self.waiting.pop(id(record), None)

    def value(self, v, name, depth=0):
        """The record of anything that a call takes or gives; `name` is that of its file. Of what cannot be looked into
        the type alone."""
        if v is None or depth > DEEPEST:
            return None
        record = attempt(self.looked_into, v, name, depth)
        return {"type": type(v).__name__, "value": ""} if record is None else record

    def looked_into(self, v, name, depth):
        if isinstance(v, torch.Tensor):
            return self.tensor(v, name)
        if isinstance(v, (bool, int, float, str)):
            return {"type": type(v).__name__, "value": number_or_text(v)}
        if isinstance(v, (list, tuple)):
            return [self.value(part, f"{name}.{i}", depth + 1) for i, part in enumerate(v)]
        if isinstance(v, dict):
            return {str(key): self.value(part, f"{name}.{key}", depth + 1) for key, part in v.items()}
        if is_dataclass_object(v):
            return {f.name: self.value(getattr(v, f.name, None), f"{name}.{f.name}", depth + 1)
                    for f in dataclasses.fields(v)}
        if isinstance(v, (torch.dtype, torch.device)):
            return {"type": "torch." + type(v).__name__, "value": str(v)}
        return {"type": type(v).__name__, "value": ""}

    def call(self, entry, args, kwargs):
        """What a forward entry has of a call's arguments, and an empty list for what it gives."""
        return {"input_args": [self.value(v, f"{entry}.input.{i}") for i, v in enumerate(args)],
                "input_kwargs": {key: self.value(v, f"{entry}.kwargs.{key}") for key, v in kwargs.items()},
                "output": []}

    def results(self, entry, result):
        """The list of what a call gave; a dictionary is one element of it."""
        parts = result if isinstance(result, (list, tuple)) else [result]
        return [self.value(v, f"{entry}.output.{i}") for i, v in enumerate(parts)]

    def finish(self):
        """Writes the numbers into all records made so far. Waits for the device, once."""
        waiting = list(self.waiting.values())
        for (record, _), values in zip(waiting, statistics.fetched([taken for _, taken in waiting])):
            if values is None:
                continue
            of_whole = len(values) == 2
            for key, number in zip(statistics.NUMBERS, values):
                if of_whole:
                    record[key] = number != 0 if record["dtype"] == "torch.bool" else int(number)
                else:
                    record[key] = int(number) if key in statistics.COUNTS else number
        self.waiting = {}


def shape_of(t):
    """Its extents; those of nested tensors are no numbers."""
    return [] if t.is_nested else [int(n) for n in t.shape]


def is_dataclass_object(v):
    return dataclasses.is_dataclass(v) and not isinstance(v, type)


def number_or_text(v):
    """Of a value of Python's own types what any reader of JSON takes."""
    if isinstance(v, float):
        return v
    if not isinstance(v, int) or -2 ** 63 <= v < 2 ** 64:
        return v
    digits = str(int(v)) if v.bit_length() < 10_000 else hex(v)  # Python writes no more digits
    return digits if v > 0 else f"({digits})"  # msprobe refuses files with text that begins with a sign


def as_json(number):
    """Of what the loop says: a number that JSON has none for is text. Statistics and values are what Python's json
    makes of them, `-Infinity`, as msprobe's are: a dump with a text that begins with a sign it refuses."""
    return number if math.isfinite(number) else str(number)
