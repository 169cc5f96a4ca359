#!/usr/bin/env python3
"""mindspore_dumps.py OUT, or mindspore_dumps.py --judge ALOFT MSPROBE. The first makes the fixtures
tests/fixtures/mindspore_dumps, steps of one small network as two programs dump them: NAME.json.gz,
{"dump", "construct", "stack"} of a step.

  mindspore-LEVEL   of a right network in MindSpore (PYNATIVE on a processor), by msprobe itself
  torch-right       its twin in PyTorch, by aloft_probe (level mix)
  torch-eps         the same with a LayerNorm that has another epsilon

The second dumps the right network and one with another epsilon in MindSpore, as statistics and with tensors, and holds
`aloft probe compare` of both against `msprobe compare` (probe_compare.py).

In an environment with mindspore 2.10 and mindstudio-probe 26.2 the first ones are written, in one with torch the
others; each has its own, as the two do not go together. Both draw weights and batches by numpy from one seed.
"""
import gzip
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

LEVELS = ("L0", "L1", "mix")
BATCH, WIDTH, HIDDEN, CLASSES = 6, 8, 16, 4
RIGHT_EPSILON, WRONG_EPSILON = 1e-7, 1e-3


def drawn():
    """Weights by their places, and a batch: the same in both programs."""
    rng = np.random.default_rng(0)

    def normal(size, *shape):
        return (size * rng.standard_normal(shape)).astype(np.float32)

    weights = {"fc1.weight": normal(.3, HIDDEN, WIDTH), "fc1.bias": normal(.1, HIDDEN),
               "fc2.weight": normal(.3, CLASSES, HIDDEN), "fc2.bias": normal(.1, CLASSES)}
    return weights, normal(1, BATCH, WIDTH), rng.integers(0, CLASSES, BATCH)


def without_places(v):
    """Of the machine that made it a stack says where packages lie, and where the program does: both are cut off."""
    if isinstance(v, list):
        return [without_places(part) for part in v]
    if isinstance(v, dict):
        return {key: without_places(part) for key, part in v.items()}
    if not isinstance(v, str):
        return v
    return re.sub(r"File /\S*?/(site-packages/|[^/ ]+\.py)", r"File /opt/\1", v)


def pack(step, out):
    [process] = [path.parent for path in step.glob("*/dump.json")]
    whole = {name: without_places(json.loads((process / f"{name}.json").read_text()))
             for name in ("dump", "construct", "stack")}
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(whole, separators=(",", ":")).encode())


def in_mindspore(level, folder, task="statistics", epsilon=RIGHT_EPSILON):
    """One step of the network, dumped; in a process of its own, as a debugger of msprobe is one for all."""
    import mindspore as ms
    from mindspore import Tensor, nn
    from msprobe.core.dump.data_dump.data_processor import mindspore_processor
    from msprobe.mindspore import PrecisionDebugger

    # MindSpore has no kernel of LinalgVectorNorm for a processor, which msprobe's norm is made of.
    class Functions:
        max, min, mean = map(staticmethod, (ms.mint.max, ms.mint.min, ms.mint.mean))

        @staticmethod
        def norm(t):
            return Tensor(np.float32(np.linalg.norm(t.asnumpy().astype(np.float64))))

        def __getattr__(self, name):
            return getattr(ms.mint, name)

    mindspore_processor.mint = Functions()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    weights, x, y = drawn()

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Dense(WIDTH, HIDDEN, Tensor(weights["fc1.weight"]), Tensor(weights["fc1.bias"]))
            self.act = nn.ReLU()
            self.ln = nn.LayerNorm((HIDDEN,), epsilon=float(epsilon))
            self.fc2 = nn.Dense(HIDDEN, CLASSES, Tensor(weights["fc2.weight"]), Tensor(weights["fc2.bias"]))

        def construct(self, x):
            return self.fc2(self.ln(self.act(self.fc1(x))))

    net, loss = Net(), nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, net.trainable_params())
    config = Path(folder) / "config.json"
    of_task = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    config.write_text(json.dumps({"task": task, "dump_path": str(folder), "rank": [], "step": [],
                                  "level": level, task: of_task}))
    debugger = PrecisionDebugger(config_path=str(config))
    debugger.start(net)
    gradient(Tensor(x), Tensor(y.astype(np.int32)))
    debugger.stop()
    debugger.step()


def in_torch(epsilon, folder):
    import torch
    from torch import nn
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/aloft_probe"))
    from aloft_probe import Probe
    weights, x, y = drawn()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.act = nn.Linear(WIDTH, HIDDEN), nn.ReLU()
            self.ln, self.fc2 = nn.LayerNorm(HIDDEN, eps=epsilon), nn.Linear(HIDDEN, CLASSES)

        def forward(self, x):
            return self.fc2(self.ln(self.act(self.fc1(x))))

    net = Net()
    net.load_state_dict({name: torch.tensor(w) for name, w in weights.items()}, strict=False)
    with Probe(net, folder, level="mix").step():
        nn.functional.cross_entropy(net(torch.tensor(x)), torch.tensor(y)).backward()


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            import mindspore  # noqa: F401
        except ImportError:
            for name, epsilon in (("right", RIGHT_EPSILON), ("eps", WRONG_EPSILON)):
                in_torch(epsilon, Path(folder) / name)
                pack(Path(folder) / name / "step0", out / f"torch-{name}.json.gz")
            return
        for level in LEVELS:
            made = Path(folder) / level
            made.mkdir()
            subprocess.run([sys.executable, __file__, level, made], check=True, stdout=subprocess.DEVNULL)
            pack(made / "step0", out / f"mindspore-{level}.json.gz")


def judge(aloft, msprobe):
    for task in ("statistics", "tensor"):
        with tempfile.TemporaryDirectory() as folder:
            dumps = []
            for epsilon in (RIGHT_EPSILON, WRONG_EPSILON):
                made = Path(folder) / str(epsilon)
                made.mkdir()
                subprocess.run([sys.executable, __file__, "mix", made, task, str(epsilon)], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                dumps += made.glob("step0/*/dump.json")
            print(f"== MindSpore, level mix, {task}, another epsilon", flush=True)
            subprocess.run([sys.executable, Path(__file__).with_name("probe_compare.py"), aloft, msprobe, *dumps],
                           check=True)


if __name__ == "__main__":
    if len(sys.argv) in (3, 5) and sys.argv[1] in LEVELS:
        in_mindspore(*sys.argv[1:])
    elif len(sys.argv) == 4 and sys.argv[1] == "--judge":
        judge(*sys.argv[2:])
    elif len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        sys.exit(__doc__)
