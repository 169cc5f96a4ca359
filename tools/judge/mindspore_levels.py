#!/usr/bin/env python3
"""What a small network of MindSpore computes at each of its precision levels: outputs at the start, and the losses of
some steps. Writes tests/fixtures/mindspore_levels.json. Needs mindspore (pip install mindspore==2.10.0), on a CPU.

  mindspore_levels.py            writes the fixture
  mindspore_levels.py --check    compares a fresh run with it

Weights and inputs are bf16 numbers, so that both sides begin with the same bits in every type.
"""
import json
import pathlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, amp, nn, ops

FIXTURE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "mindspore_levels.json"
STEPS, RATE, MOMENTUM = 6, 0.05, 0.9


class Network(nn.Cell):
    """A product, a norm, and ops of MindSpore's white, black and no list."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, has_bias=True)
        self.norm = nn.BatchNorm2d(4, momentum=0.9)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.up = nn.Dense(64, 12)
        self.softmax = ops.Softmax(-1)
        self.tanh = ops.Tanh()
        self.down = nn.Dense(12, 5)

    def construct(self, x):
        h = self.up(self.flatten(self.pool(self.relu(self.norm(self.conv(x))))))
        y = self.down(self.tanh(h) * self.softmax(h))
        return self.tanh(y) + y


def bf16(values):
    """The numbers cut to the upper 16 bits."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xffff0000)
    return bits.view(np.float32)


def drawn(random, shape, size):
    return bf16(size * random.standard_normal(shape))


def networks():
    """A fresh network under each level and some lists, by name."""
    for level in ("O0", "O1", "O2", "O3", "auto"):
        yield level, lambda net, level=level: amp.auto_mixed_precision(net, level)
    yield "white Dense", lambda net: amp.custom_mixed_precision(net, white_list=[nn.Dense])
    yield "black Dense", lambda net: amp.custom_mixed_precision(net, black_list=[nn.Dense])


def build():
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    random = np.random.default_rng(7)
    x, label = drawn(random, (16, 1, 8, 8), 1), (np.arange(16) % 5).astype(np.int32)
    start = {p.name: drawn(random, p.shape, 0.3) for p in Network().trainable_params() if "norm" not in p.name}
    cases = []
    for name, mixed in networks():
        network = Network()
        for p in network.trainable_params():
            if p.name in start:
                p.set_data(Tensor(start[p.name]))
        parameters = network.trainable_params()
        net = mixed(network)
        net.set_train(True)
        outputs = net(Tensor(x))
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        step = amp.build_train_network(net, nn.Momentum(parameters, RATE, MOMENTUM), loss)
        losses = [float(step(Tensor(x), Tensor(label)).asnumpy()) for _ in range(STEPS)]
        cases.append({"name": name, "type": str(outputs.dtype), "losses": losses,
                      "outputs": outputs.astype(ms.float32).asnumpy().ravel().tolist(),
                      "parameters": sorted({str(p.dtype) for p in parameters})})
    return {"mindspore": ms.__version__, "rate": RATE, "momentum": MOMENTUM, "x": x.ravel().tolist(),
            "label": label.tolist(), "start": {name: value.ravel().tolist() for name, value in start.items()},
            "cases": cases}


def main():
    content = build()
    if sys.argv[1:] != ["--check"]:
        head = json.dumps({k: v for k, v in content.items() if k != "cases"})[:-1]
        lines = ",\n".join("  " + json.dumps(case) for case in content["cases"])
        FIXTURE.write_text(f'{head}, "cases": [\n{lines}\n]}}\n')
        return
    known = json.loads(FIXTURE.read_text())
    for old, new in zip(known["cases"], content["cases"], strict=True):
        far = np.abs(np.subtract(old["outputs"], new["outputs"])).max()
        if old["name"] != new["name"] or old["type"] != new["type"] or far > 1e-3:
            sys.exit(f"{old['name']}: outputs differ by {far}")


if __name__ == "__main__":
    main()
