#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/torch_file: states of apex's loss scalers in each form of file that torch.save has had.

The pickles are Python's own, of protocol 2, which is torch's; torch itself is not needed: around them is what
torch/serialization.py writes. In a checkpoint a tensor is a call of torch._utils._rebuild_tensor_v2 with a persistent
id, as there.
"""
import collections
import io
import pathlib
import pickle
import sys
import types
import zipfile

CORPUS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fuzz" / "corpus" / "torch_file"
MAGIC, PROTOCOL = 0x1950a86a20f9469cfc6c, 1001


def module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    for key, value in members.items():
        value.__module__, value.__qualname__, value.__name__ = name, key, key
        setattr(sys.modules[name], key, value)


def rebuild(*arguments):
    return arguments


class FloatStorage:
    pass


module("torch")
module("torch._utils", _rebuild_tensor_v2=rebuild)
sys.modules["torch"].FloatStorage = FloatStorage
FloatStorage.__module__ = "torch"


class Storage:
    """What torch pickles by a persistent id."""


class Tensor:
    def __reduce__(self):
        return rebuild, (Storage(), 0, (2, 3), (3, 1), False, collections.OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        return ("storage", FloatStorage, "0", "cpu", 6) if isinstance(value, Storage) else None


def pickled(value):
    out = io.BytesIO()
    Pickler(out, protocol=2).dump(value)
    return out.getvalue()


def zipped(value):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for name, content in (("data.pkl", pickled(value)), ("data/0", bytes(24)), ("version", b"3\n")):
            file.writestr(zipfile.ZipInfo("archive/" + name, (1980, 1, 1, 0, 0, 0)), content)
    return out.getvalue()


def before_zip(value):
    system = {"protocol_version": PROTOCOL, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    return b"".join(pickle.dumps(v, protocol=2) for v in (MAGIC, PROTOCOL, system)) + pickled(value) + \
        pickle.dumps(["0"], protocol=2) + (6).to_bytes(8, "little") + bytes(24)


def main():
    state = collections.OrderedDict(
        (f"loss_scaler{i}", {"loss_scale": scale, "unskipped": unskipped})
        for i, (scale, unskipped) in enumerate([(32768.0, 1999), (0.5, 0), (16777216.0, 70000)]))
    checkpoint = {"model": collections.OrderedDict(weight=Tensor(), bias=Tensor()),
                  "optimizer": {"state": {0: {"step": 3, "exp_avg": Tensor()}},
                                "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999), "params": [0, 1]}]},
                  "amp": state, "epoch": 7, "done": False, "name": "a checkpoint"}
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, content in (("state.pt", zipped(state)), ("checkpoint.pt", zipped(checkpoint)),
                          ("state_before_zip.pt", before_zip(state)),
                          ("checkpoint_before_zip.pt", before_zip(checkpoint)),
                          ("plain.pkl", pickle.dumps(dict(state), protocol=4))):
        (CORPUS / name).write_bytes(content)


if __name__ == "__main__":
    main()
