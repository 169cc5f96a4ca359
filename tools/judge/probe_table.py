#!/usr/bin/env python3
"""probe_table.py ALOFT [OUT]: all that the probe and msprobe both say, in one table of figures joined by name: dumps of
both compared by both (probe_compare.py), packs of both held against each other by both (config_check.py), a step dumped
by both collectors (probe_collectors.py). Behind it every figure that is listed as a defect of msprobe and every one that
is not, with both values; exit 1 where there is one that is not. What is made stays in OUT, and dumps of msprobe that lie
there are not made again.

Run by a Python that has torch, safetensors and PyPI's mindstudio-probe 26.2, whose program `msprobe` lies beside it.
"""
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import config_check
import probe_collectors
import probe_compare
import torch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODEL = ROOT / "tests" / "fixtures" / "gpt2-tiny"
MSPROBE = Path(sys.executable).parent / "msprobe"
# Of each side of a pair of msprobe's dumps: name, level, task, change.
DUMPS = (("right", "L0", "statistics"), ("scaled", "L0", "statistics", "attention_scale"),
         ("bfloat16", "L0", "statistics", "bfloat16"), ("right-mix", "mix", "statistics"),
         ("scaled-mix", "mix", "statistics", "attention_scale"), ("right-md5", "mix", "md5"),
         ("scaled-md5", "mix", "md5", "attention_scale"), ("right-tensor", "mix", "tensor"),
         ("scaled-tensor", "mix", "tensor", "attention_scale"))
# Settings as they are told: a script of Megatron's form, one with other names, a file of YAML.
SETTINGS = {
    "megatron.sh": """OPT_ARGS="
    --lr 1e-4
    --weight-decay 0.1
    --adam-beta1 0.9
    --clip-grad 1.0
"
torchrun --nproc_per_node 2 train.py $OPT_ARGS \\
    --seq-length 1024 --micro-batch-size 4 --lr-warmup-iters 100 --num-layers 12 --hidden-dropout 0.1 --seed 1 --bf16
""",
    "names.sh": "torchrun train.py --learning-rate 2e-4 --weight_decay 0.01 --adam-beta2 0.95 --max-grad-norm 1.0 "
                "--seq_length 2048 --micro_batch_size 8 --num-layer 12 --hidden-dropouts 0.1 --seed 1 --fp16\n",
    "names.yaml": """optim: {learning_rate: 0.0002, weight_decay: 0.1, adam_beta1: 0.95}
model: {num_layers: 12, hidden_dropout: 0.0, seq_len: 1024}
betas: [0.9, 0.95]
batch_size: 4
bf16: true
warmup_iters: 100
grad_clip: 1.0
""",
    "betas.yaml": "optimizer: {lr: 0.001, betas: [0.9, 0.99]}\nepochs: 3\ndata: {shuffle: false}\n"}
RECIPE = """[model]
family = "gpt2"
layers = 1
dim = 16
heads = 2
context = 16
[data]
text = ["text.txt"]
tokenizer = { kind = "byte" }
[train]
steps = 2
batch = 2
seed = SEED
"""


def run(*words, right=(0,), cwd=None):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=cwd)
    if done.returncode not in right:
        sys.exit(f"{' '.join(map(str, words))} ends with {done.returncode}:\n{done.stderr[-2000:]}")


# Names of a module's records, which both programs write, with its class between path and direction.
OF_MODULE = re.compile(r"Module\.(.*)\.\w+\.((?:forward|backward|parameters_grad)(?:\.\d+)?)")


def renamed(source, theirs, folder):
    """`source`, a dump of ours, in `folder`, its modules called as in `theirs`: msprobe finds partners by name alone,
    so that figures of ours beside its own are compared only so. Paths below `transformer.` and classes differ. Not of
    what one of them alone has."""
    their_names = {}
    for name in json.loads(theirs.read_text())["data"]:
        if found := OF_MODULE.fullmatch(name):
            their_names[found[1].removeprefix("transformer."), found[2].split(".")[0]] = name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source.parent, folder)
    names = {}
    for name in json.loads(source.read_text())["data"]:
        found = OF_MODULE.fullmatch(name)
        if found and (found[1], found[2].split(".")[0]) in their_names:
            names[name] = their_names[found[1], found[2].split(".")[0]]
    for file in ("dump.json", "construct.json", "stack.json"):
        text = (folder / file).read_text()
        for name, to in names.items():
            text = text.replace(f'"{name}"', f'"{to}"')
        (folder / file).write_text(text)


def dump_of(folder):
    [path] = Path(folder).rglob("dump.json")
    return path


def record_of(tensor, file):
    """What msprobe writes of a tensor, whose elements go into `file` where there is one."""
    floats = tensor.double() if tensor.is_floating_point() else None
    record = {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape),
              "Max": tensor.max().item(), "Min": tensor.min().item(),
              "Mean": None if floats is None else floats.mean().item(),
              "Norm": None if floats is None else floats.norm().item(), "requires_grad": False}
    if file is not None:
        torch.save(tensor, file)
        record["data_name"] = file.name
    return record


def give(dump, to, tensors):
    """A copy of msprobe's dump in which a module gives these tensors."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(dump, to)
    path = dump_of(to)
    said = json.loads(path.read_text())
    name = "Module.transformer.h.0.mlp.Mlp.forward.0"
    folder = path.parent / "dump_tensor_data" if said["dump_data_dir"] else None
    said["data"][name]["output"] = [record_of(t, folder and folder / f"{name}.output.{i}.pt")
                                    for i, t in enumerate(tensors)]
    said["dump_data_dir"] = folder and str(folder)
    path.write_text(json.dumps(said))


def edges():
    """[(of the first run, of the second)]: where msprobe does otherwise than numbers are (docs/compare.md)."""
    plain = torch.linspace(1, 2, 6)
    def holding(value):
        return torch.cat((torch.tensor([value]), plain))
    return [(holding(math.inf), holding(-math.inf)), (holding(math.nan), holding(math.inf)),
            (holding(math.inf), holding(math.nan)), (holding(math.nan), holding(-math.inf)),
            (torch.tensor(1, dtype=torch.uint8), torch.tensor(2, dtype=torch.uint8)),
            (torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([2, 1], dtype=torch.uint8)),
            (1e-17 * plain, 1e-17 * plain.flip(0)), (1e-17 * plain, -1e-17 * plain), (0 * plain, 0 * plain)]


def make_dumps(aloft, out):
    """{pair: (first dump, second dump)}."""
    for name, *how in DUMPS:
        if not (out / name).exists():
            run(sys.executable, HERE / "probe_dump.py", out / name, *how)
    tokens = MODEL / "expected.safetensors"
    md5 = ("--task", "tensor", "--set", 'probe.summary="md5"')
    for name, *how in (("ours",), ("ours-mix", "--level", "mix"), ("ours-tensor", "--task", "tensor"),
                       ("ours-tensor-op", "--task", "tensor", "--level", "op"),
                       ("ours-tensor-mix", "--task", "tensor", "--level", "mix"),
                       ("ours-tensor-mix-bf16", "--task", "tensor", "--level", "mix", "--precision", "O2:bf16"),
                       ("ours-bf16", "--precision", "O2:bf16"), ("ours-md5", "--level", "mix", *md5),
                       ("ours-md5-bf16", "--level", "mix", *md5, "--precision", "O2:bf16")):
        shutil.rmtree(out / name, ignore_errors=True)
        run(aloft, "probe", "run", MODEL, "--tokens", tokens, "--out", out / name, *how)
    shutil.copytree(dump_of(out / "ours").parent, out / "ours-stackless", dirs_exist_ok=True)
    (out / "ours-stackless" / "stack.json").write_text("{}")
    for name in ("right", "right-tensor"):
        for side, tensors in zip(("a", "b"), zip(*edges())):
            give(out / name, out / f"{name}-edges-{side}", tensors)
    renamed(dump_of(out / "ours"), dump_of(out / "right"), out / "ours-renamed")
    pairs = (("right-edges-a", "right-edges-b"), ("right-tensor-edges-a", "right-tensor-edges-b"),
             ("scaled", "right"), ("bfloat16", "right"), ("scaled-mix", "right-mix"), ("scaled-md5", "right-md5"),
             ("scaled-tensor", "right-tensor"), ("ours", "right"),
             ("ours-renamed", "right"), ("right", "ours-renamed"), ("ours-stackless", "right"), ("right", "ours"),
             ("ours", "ours-bf16"), ("ours-mix", "ours-mix"), ("ours-tensor", "right-tensor"),
             ("ours-tensor-op", "ours-tensor-op"), ("ours-tensor-mix", "ours-tensor-mix"),
             ("ours-tensor-mix-bf16", "ours-tensor-mix"),
             ("ours-md5-bf16", "ours-md5"), ("ours-md5", "right-md5"), ("right-md5", "ours-md5"))
    return {f"{a} / {b}": (dump_of(out / a), dump_of(out / b)) for a, b in pairs}


def make_packs(aloft, out):
    """{pair: (first pack, second pack)}."""
    for name, text in (("train", "--lr 1e-3 --batch-size 4 --beta1 0.9"), ("other", "--lr 2e-3 --batch-size 4 --beta2 1")):
        (out / f"{name}.sh").write_text(f"export OMP_NUM_THREADS=2\ntorchrun --nproc_per_node 2 train.py {text}\n")
    script, other = out / "train.sh", out / "other.sh"
    (out / "text.txt").write_text("to be held against each other, or not " * 50)
    for name, *how in (("seed1", 1, script), ("seed2", 2, other), ("permuted", 1, script, "permuted")):
        run(sys.executable, HERE / "config_check_pack.py", out / f"{name}.zip", *how)
    for name, seed in (("recipe1", 1), ("recipe2", 2)):
        (out / f"{name}.toml").write_text(RECIPE.replace("SEED", str(seed)))
    # Packed again by ours: of both programs' packs, and of recipes.
    for name in ("seed1.zip", "recipe1.toml", "recipe2.toml"):
        to = f"ours-{name.split('.')[0]}.zip"
        run(aloft, "probe", "check-config", name, name, "--pack", to, "-o", "packing", cwd=out)
    for name, text in SETTINGS.items():  # packed by both
        (out / name).write_text(text)
        (out / f"{name}.zip").unlink(missing_ok=True)
        run(MSPROBE, "config_check", "-d", name, "-o", f"{name}.zip", cwd=out)
        run(aloft, "probe", "check-config", name, name, "--pack", f"ours-{name}.zip", "-o", "packing", cwd=out)
    settings = (("megatron.sh", "names.sh"), ("megatron.sh", "names.yaml"), ("names.sh", "names.yaml"),
                ("names.yaml", "betas.yaml"))
    pairs = (("seed1", "seed2"), ("seed2", "seed1"), ("seed1", "permuted"), ("ours-seed1", "seed1"),
             ("ours-seed1", "seed2"), ("ours-recipe1", "ours-recipe2"), ("ours-recipe2", "ours-recipe1"), *settings,
             *((b, a) for a, b in settings), *((f"ours-{a}", f"ours-{b}") for a, b in settings))
    return {f"{a} / {b}": (out / f"{a}.zip", out / f"{b}.zip") for a, b in pairs}


def print_row(judge, pair, theirs, ours, joined, same, listed, other, words="", alone="", elsewhere=""):
    print(f"{judge:10} {pair:46} {theirs:8} {ours:7} {joined:7} {alone:6} {elsewhere:8} {same + listed + other:8} "
          f"{same:7} {words:7} {listed:7} {other:5}", flush=True)


def main(aloft, out=None):
    aloft = Path(aloft).resolve()
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            return main(aloft, folder)
    out = Path(out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    listed, other = [], []
    print(f"{'judge':10} {'pair':46} {'msprobe':>8} {'here':>7} {'joined':>7} {'alone':>6} "
          f"{'another':>8} {'figures':>8} {'equal':>7} {'words':>7} {'listed':>7} {'not':>5}", flush=True)
    for pair, (npu, bench) in make_dumps(aloft, out).items():
        found = probe_compare.compared(aloft, MSPROBE, npu, bench)
        columns = found.columns.values()
        print_row("compare", pair, found.theirs, found.ours, len(found.joined), sum(c.same for c in columns),
                  sum(len(c.listed) for c in columns), sum(len(c.other) for c in columns),
                  sum(c.words for c in columns), len(found.alone), len(found.elsewhere))
        # Where msprobe finds none ours goes by structure: counted, and no difference.
        other += [(pair, f"{name}: Bench Name", here, there) for name, here, there in found.elsewhere if there != "N/A"]
        other += [(pair, name, "one row", f"{count} rows") for name, count in found.multiplied.items()]
        for column, c in found.columns.items():
            for to, some in ((listed, c.listed), (other, c.other)):
                to += [(pair, f"{name}: {column}", a, b) for name, a, b in some]
    for pair, packs in make_packs(aloft, out).items():
        sheets, _ = config_check.checked(aloft, MSPROBE, *packs)
        for sheet, s in sheets.items():
            print_row("config", f"{pair}: {sheet}", s.theirs, s.ours, s.joined, s.same, len(s.listed),
                      len(s.other) + len(s.alone))
            for to, some in ((listed, s.listed), (other, s.other)):
                to += [(pair, f"{sheet}: {' / '.join(names)}: {column}", a, b) for names, column, a, b in some]
            other += [(pair, f"{sheet}: {' / '.join(names)}", "no row", "a row") for names in s.alone]
    there, here, same, wrong = probe_collectors.joined()
    print_row("collectors", "aloft_probe / msprobe", len(there), len(here), len(there.keys() & here.keys()),
              sum(same.values()), 0, len(wrong))
    other += [("collectors", f"{name}: {figure}", x, y) for name, figure, x, y in wrong]
    for what, rows in (("listed", listed), ("not listed", other)):
        print(f"{what}: {len(rows)}")
        for pair, name, a, b in rows:
            print(f"    {pair}: {name}: {a} here, {b} there")
    (out / "figures.json").write_text(json.dumps({"listed": listed, "other": other}, indent=1))
    return 1 if other else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: probe_table.py ALOFT [OUT]")
    sys.exit(main(*sys.argv[1:]))
