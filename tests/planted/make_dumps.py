"""make_dumps.py OUT [NAME...]: NAME.json.gz, dumps of the model of tests/fixtures/gpt2-tiny in PyTorch, made by aloft_probe:
`right`, and each planted bug and each correct variant of these names, or of all.

The committed ones: `python make_dumps.py tests/fixtures/planted`.
"""
import gzip
import importlib
import json
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "fixtures" / "gpt2-tiny"
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python/aloft_probe")]

from aloft_probe import Probe  # noqa: E402
from model import Gpt2  # noqa: E402


def planted():
    """{name: module} of the bugs and the variants, a file each."""
    return {path.stem: importlib.import_module(f"{kind}.{path.stem}")
            for kind in ("bugs", "variants") for path in sorted((HERE / kind).glob("*.py"))}


def dump(out, change=None):
    """What a step holds, of the model that `change` has changed: a dump.json, packed."""
    torch.manual_seed(1)
    model = Gpt2(json.loads((FOLDER / "config.json").read_text()))
    model.load_state_dict(load_file(FOLDER / "model.safetensors"), strict=False)
    data = load_file(FOLDER / "expected.safetensors")
    loss = model.loss
    if change:
        loss = change.plant(model) or loss
    with tempfile.TemporaryDirectory() as folder:
        with Probe(model, folder).step():
            loss(data["tokens"], data["targets"]).backward()
        made = Path(folder) / "step0/rank/dump.json"
        text = json.dumps(json.loads(made.read_text()), separators=(",", ":")) + "\n"
        out.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main(out, *names):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    changes = planted()
    for name in names or ["right", *changes]:
        dump(out / f"{name}.json.gz", changes.get(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
