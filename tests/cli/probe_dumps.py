"""Dumps of the probe as tests read them: records, tensors, the run that made them."""
import io
import json
import math
import pickle
import struct
import zipfile

from program import ProgramTest


def records(data):
    """Every record of a dump, with the entry and the list that it stands in."""
    for entry, parts in data.items():
        for name, part in parts.items():
            for record in part if isinstance(part, list) else part.values():
                if record is not None:  # an operand at which nobody looks
                    yield entry, name, record


STORAGES = {"FloatStorage": "f", "BFloat16Storage": "H"}  # struct's letters


def values(letter, data):
    """Numbers of bytes; bf16 is the upper half of an f32."""
    numbers = struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data)
    if letter != "H":
        return numbers
    return struct.unpack(f"<{len(numbers)}f", b"".join(b"\0\0" + struct.pack("<H", n) for n in numbers))


class Reader(pickle.Unpickler):
    """Takes a pickle of torch.save for what it says, and calls nothing but what builds a tensor."""

    def __init__(self, archive):
        super().__init__(io.BytesIO(archive.read("archive/data.pkl")))
        self.archive = archive

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, grad, hooks: (*storage, offset, shape, strides, grad, hooks)
        if module == "torch" and name in STORAGES:
            return name
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, said):
        word, storage, key, place, numel = said
        data = self.archive.read(f"archive/data/{key}")
        return storage, place, numel, data


def tensor_of(path):
    """Shape and bytes and numbers of a file that torch.load reads."""
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None:
            raise ValueError(path)
        for entry in archive.infolist():
            if entry.filename == "archive/data/0":
                head = path.read_bytes()[entry.header_offset:entry.header_offset + 30]
                begin = entry.header_offset + 30 + sum(struct.unpack("<HH", head[26:30]))
                assert begin % 64 == 0, "torch maps storages"
        storage, place, numel, data, offset, shape, strides, grad, hooks = Reader(archive).load()
    assert (place, offset, grad, hooks) == ("cpu", 0, False, {}) and numel == math.prod(shape)
    step = 1
    for extent, stride in reversed(list(zip(shape, strides))):
        assert stride == step
        step *= extent
    return list(shape), data, values(STORAGES[storage], data)


class ProbeTest(ProgramTest):
    def dump(self, folder, step=0, name="dump"):
        def refuse(word):
            if name == "dump":  # as msprobe has it
                return float(word)
            raise ValueError(f"{word} is no JSON")
        path = self.folder / folder / f"step{step}" / "rank" / f"{name}.json"
        return json.loads(path.read_text(), parse_constant=refuse)

    def weights(self, run):
        newest = max((self.folder / run / "checkpoints").iterdir())
        return (newest / "model.safetensors").read_bytes()

    def losses(self, run):
        lines = map(json.loads, (self.folder / run / "metrics.jsonl").read_text().splitlines())
        return [(line["step"], line.get("loss"), line.get("grad_norm"), line.get("loss_scale")) for line in lines]

    def tensors(self, folder, step=0):
        """Records with a file, by its name."""
        data = self.dump(folder, step)["data"]
        return {record["data_name"]: record for _, _, record in records(data) if "data_name" in record}
