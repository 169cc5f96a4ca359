"""make_dumps.py OUT [NAME...]: NAME.json.gz, dumps with the lines that calls came from, of small models in PyTorch, made by aloft_probe: `right` and
`right_running`, the right one with two passes in a step (`twice-mix`), and each planted bug and each correct variant of these names, or of all; some with functions, of level
op and mix (NAME-op, NAME-mix); of a training loop those of its steps.

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

# What is dumped with functions, too: NAME-op and NAME-mix.
WITH_FUNCTIONS = {"op": ("right", "exact_gelu", "wrong_eps"),
                  "mix": ("right", "exact_gelu", "wrong_eps", "residual_dropped", "attention_scale", "softmax_axis",
                          "mask_off_by_one", "no_mask")}
HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python/aloft_probe")]

from aloft_probe import Probe  # noqa: E402
from llama import Llama  # noqa: E402
from model import Gpt2  # noqa: E402
from running import Network  # noqa: E402
from training_loop import Training  # noqa: E402


def planted(kinds=("bugs", "variants")):
    """{name: module} of these folders, a file each."""
    return {path.stem: importlib.import_module(f"{kind}.{path.stem}")
            for kind in kinds for path in sorted((HERE / kind).glob("*.py"))}


def made_model(name):
    """The right model, with its weights; (tokens, targets)."""
    torch.manual_seed(1)
    torch.set_num_threads(2)
    if name == "running":
        return Network(), (None, None)
    folder = FIXTURES / name
    model = (Llama if name == "llama-tiny" else Gpt2)(json.loads((folder / "config.json").read_text()))
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    data = load_file(folder / "expected.safetensors")
    return model, (data["tokens"], data["targets"])


def shorter(v):
    """Numbers with nine digits, which float32 has; parameters as they are, which are held to more."""
    if isinstance(v, float):
        return float(f"{v:.9g}")
    if isinstance(v, list):
        return [shorter(part) for part in v]
    if not isinstance(v, dict):
        return v
    return {key: part if key == "parameters" else shorter(part) for key, part in v.items()}


def in_tree(stack):
    """stack.json with the programs of this folder by their names in the tree, and none of the lines that make dumps."""
    made = {}
    for number, (entries, lines) in stack.items():
        own = [line.replace(f"File {HERE}/", "File tests/planted/") for line in lines]
        made[number] = [entries, [line for line in own if line.startswith("File tests/planted/")
                                  and not line.startswith(f"File tests/planted/{Path(__file__).name},")]]
    return made


def read(folder, *names):
    found = {name: json.loads((folder / f"{name}.json").read_text()) for name in names}
    found["stack"] = in_tree(found["stack"])
    return found


def pack(out, value):
    text = json.dumps(shorter(value), separators=(",", ":")) + "\n"
    out.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def dump(out, change, model_name, level="module", passes=1):
    """What a step of so many passes holds, of the model that `change` has changed; with functions, which module calls which, too."""
    model, data = made_model(model_name)
    loss = model.loss
    if change:
        loss = change.plant(model) or loss
    with tempfile.TemporaryDirectory() as folder:
        probe = Probe(model, folder, level=level)
        with probe.step():
            for _ in range(passes):
                model.zero_grad()
                loss(*data).backward()
        names = ("dump", "stack") if level == "module" else ("dump", "stack", "construct")
        pack(out, read(Path(folder) / "step0/rank", *names))


def dump_training(out, change):
    """What the steps of a training loop hold: {"step0": ...}."""
    model, _ = made_model("gpt2-tiny")
    run = Training(model, getattr(change, "SCALED", False))
    change.plant(run)
    with tempfile.TemporaryDirectory() as folder:
        run.run(folder)
        steps = sorted(Path(folder).glob("step*"))
        pack(out, {step.name: read(step / "rank", "dump", "stack") for step in steps})


def main(out, *names):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    changes, loops = planted(), planted(("training",))
    of_functions = [f"{name}-{level}" for level, names_ in WITH_FUNCTIONS.items() for name in names_]
    for name in names or ["right", "right_running", *changes, *of_functions, "twice-mix", *("training-" + loop for loop in loops)]:
        file = out / f"{name}.json.gz"
        if name.startswith("training-"):
            dump_training(file, loops[name.removeprefix("training-")])
        else:
            plain, _, level = name.partition("-")
            change = changes.get(plain)
            usual = "running" if name == "right_running" else "gpt2-tiny"
            dump(file, change, getattr(change, "MODEL", usual), level or "module", 2 if plain == "twice" else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
