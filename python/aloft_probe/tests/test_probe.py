"""The collector: what it writes of a small model, and that it changes no bit of it."""
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
try:
    import torch
except ImportError:
    torch = None

if torch:
    from torch import nn

    from aloft_probe import Probe
    from aloft_probe.statistics import taken as taken_statistics

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
            self.act = nn.ReLU(inplace=True)  # writes over what it takes

        def forward(self, x, scale=None):
            return x + self.down(torch.relu(self.act(self.up(self.norm(x))))) * scale

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(11, 8)
            self.blocks = nn.ModuleList([Block(), Block()])
            self.head = nn.Linear(8, 11, bias=False)
            self.head.weight = self.table.weight

        def forward(self, tokens):
            x = self.table(tokens)
            for block in self.blocks:
                x = block(x, scale=torch.ones(()))
            return self.head(x)

    class Turn(nn.Module):
        """Pairs of numbers, turned as complex ones."""
        def forward(self, pairs):
            return torch.view_as_complex(pairs) * torch.polar(torch.ones(4), torch.arange(4.0))

    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.turn, self.back = nn.Linear(8, 8), Turn(), nn.Flatten(-2)

        def forward(self, x):
            return self.back(torch.view_as_real(self.turn(self.up(x).unflatten(-1, (4, 2)))))

RECORD = ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad", "nan", "inf", "-inf", "zeros",
          "underflowed", "saturated"]


@unittest.skipUnless(torch, "torch is not installed")
class Collector(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.out = Path(holder.name) / "probed"
        torch.manual_seed(1)
        self.model = Model()
        self.tokens = torch.randint(0, 11, (2, 5))

    def train(self, steps=1, probe=None):
        """Parameters after some steps."""
        torch.manual_seed(1)
        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        watch = Probe(model, self.out, **probe) if probe is not None else None
        for _ in range(steps):
            optimizer.zero_grad()
            if watch:
                with watch.step():
                    self.loss(model).backward()
            else:
                self.loss(model).backward()
            optimizer.step()
        return [p.detach().clone() for p in model.parameters()]

    def loss(self, model):
        return nn.functional.cross_entropy(model(self.tokens).flatten(0, 1), self.tokens.flatten())

    def dump(self, step=0, name="dump"):
        return json.loads((self.out / f"step{step}/rank/{name}.json").read_text())

    def test_modules_have_their_numbers(self):
        self.train(probe={})
        dump = self.dump()
        self.assertEqual([dump[key] for key in ("task", "level", "framework", "dump_data_dir")],
                         ["statistics", "L0", "pytorch", None])
        data = dump["data"]
        forward = data["Module.blocks.0.up.Linear.forward.0"]
        self.assertEqual(list(forward), ["input_args", "input_kwargs", "output", "parameters"])
        self.assertEqual(list(forward["output"][0]), RECORD)
        self.assertEqual(forward["output"][0]["shape"], [2, 5, 16])
        weight = self.model.blocks[0].up.weight
        record = forward["parameters"]["weight"]
        self.assertEqual(record["Max"], weight.max().item())
        self.assertEqual(record["Min"], weight.min().item())
        self.assertAlmostEqual(record["Norm"], weight.double().norm().item(), delta=1e-12)
        self.assertAlmostEqual(record["Mean"], weight.double().mean().item(), delta=1e-12)
        tokens = data["Module.table.Embedding.forward.0"]["input_args"][0]
        self.assertEqual([tokens["Max"], tokens["Mean"], tokens["dtype"]],
                         [self.tokens.max().item(), None, "torch.int64"])
        self.assertEqual(data["Module.blocks.0.Block.forward.0"]["input_kwargs"]["scale"]["Max"], 1)

    def test_gradients_are_those_of_autograd(self):
        self.train(probe={})
        data = self.dump()["data"]
        seen = {}
        self.model.blocks[1].norm.register_full_backward_hook(
            lambda m, taken, given: seen.update(taken=taken[0], given=given[0]))
        self.loss(self.model).backward()
        back = data["Module.blocks.1.norm.LayerNorm.backward.0"]
        self.assertAlmostEqual(back["output"][0]["Norm"], seen["taken"].double().norm().item(), delta=1e-7)
        self.assertAlmostEqual(back["input"][0]["Norm"], seen["given"].double().norm().item(), delta=1e-7)
        for path, parameter in self.model.named_parameters():
            owner, _, own = path.rpartition(".")
            kind = type(self.model.get_submodule(owner)).__name__
            record = data[f"Module.{owner}.{kind}.parameters_grad.0"][own][0]
            self.assertAlmostEqual(record["Norm"], parameter.grad.double().norm().item(), delta=1e-6, msg=path)

    def test_no_bit_is_changed(self):
        plain = self.train(3)
        for task in ("statistics", "tensor"):
            for level in ("module", "op", "mix"):
                self.out = self.out.parent / f"{task}-{level}"
                for a, b in zip(plain, self.train(3, {"task": task, "level": level})):
                    self.assertTrue(torch.equal(a, b), (task, level))

    def test_functions_are_named_by_their_calls(self):
        self.train(probe={"level": "mix"})
        data, parents = self.dump()["data"], self.dump(name="construct")
        self.assertEqual(parents["Torch.relu.1.forward"], "Module.blocks.1.Block.forward.0")
        self.assertEqual(parents["Module.blocks.1.up.Linear.forward.0"], "Module.blocks.1.Block.forward.0")
        linear = [name for name in data if name.startswith("Functional.linear.") and name.endswith("forward")]
        self.assertEqual(len(linear), 5)
        self.assertEqual(data["Torch.relu.0.backward"]["input"][0]["shape"], [2, 5, 16])
        self.assertFalse([name for name in data if "view_as" in name or "aminmax" in name])

    def test_functions_that_give_back_what_they_took_make_no_numbers(self):
        class Net(nn.Module):
            def forward(self, x):
                y = x * 3
                return y.to(torch.float32) + y + y.to(torch.bfloat16).float() + y.relu_()

        net = Net()
        with Probe(net, self.out, level="op").step():
            net(torch.ones(2, 2, requires_grad=True)).sum().backward()
        names = [name for name in self.dump()["data"] if name.endswith(".forward")]
        self.assertEqual([name for name in names if ".to." in name], ["Tensor.to.0.forward"])
        self.assertEqual(self.dump()["data"]["Tensor.to.0.forward"]["output"][0]["dtype"], "torch.bfloat16")
        self.assertIn("Tensor.relu_.0.forward", names)

    def test_lines_of_the_program_are_known(self):
        self.train(probe={})
        stack = self.dump(name="stack")
        lines = {name: text for names, text in stack.values() for name in names}
        self.assertIn("self.up(self.norm(x))", lines["Module.blocks.0.up.Linear.forward.0"][0])
        self.assertFalse([text for text in sum(lines.values(), []) if "torch/nn/modules" in text])

    def test_tensors_can_be_read_back(self):
        self.train(probe={"task": "tensor"})
        dump = self.dump()
        record = dump["data"]["Module.blocks.0.up.Linear.forward.0"]["parameters"]["weight"]
        stored = torch.load(Path(dump["dump_data_dir"]) / record["data_name"], weights_only=True)
        self.assertTrue(torch.equal(stored, self.model.blocks[0].up.weight))

    def test_steps_are_chosen(self):
        self.train(3, {"at": [0, 2]})
        self.assertEqual({path.name for path in self.out.glob("step*")}, {"step0", "step2"})

    def test_what_is_not_finite_is_written_as_msprobe_does(self):
        probe = Probe(self.model, self.out)
        with torch.no_grad():
            self.model.blocks[0].up.bias[0] = math.inf
            self.model.blocks[0].up.bias[1] = -math.inf
        with probe.step():
            self.loss(self.model)
        record = self.dump()["data"]["Module.blocks.0.up.Linear.forward.0"]["output"][0]
        self.assertEqual([record[key] for key in ("Max", "Min", "Norm", "inf", "-inf")],
                         [math.inf, -math.inf, math.inf, 10, 10])
        self.assertTrue(math.isnan(record["Mean"]))
        text = next(self.out.glob("step0/*/dump.json")).read_text()
        self.assertIn('"Min": -Infinity', text)
        self.assertNotIn('"-inf"', text.replace('"-inf":', ""))

    def test_float64_has_figures_to_its_ends(self):
        for values, mean, norm in (([7e-201, 0], 3.5e-201, 7e-201), ([2e305] * 4096, 2e305, 64 * 2e305),
                                   ([1e308, 0.5e308], 0.75e308, math.sqrt(1.25) * 1e308), ([0, 0], 0, 0), ([5e-324], 5e-324, 5e-324),
                                   ([math.inf, 1], math.inf, math.inf), ([3, 4], 3.5, 5)):
            taken = taken_statistics(torch.tensor(values, dtype=torch.float64)).tolist()
            for got, want in ((taken[2], mean), (taken[3], norm)):
                if got != want:
                    self.assertAlmostEqual(got / want, 1, delta=1e-14, msg=values)

    def test_complex_numbers_have_the_figures_of_their_magnitudes(self):
        seen = []
        with torch.random.fork_rng():
            model, x = Turned(), torch.randn(3, 8)
        model.turn.register_forward_hook(lambda m, taken, given: seen.append(given.detach()))
        for level in ("module", "op"):
            probe = Probe(model, self.out / level, level=level)
            with probe.step():
                model(x).square().sum().backward()
            probe.remove()
        size = seen[0].abs().double()
        data = {level: json.loads((self.out / level / "step0/rank/dump.json").read_text())["data"]
                for level in ("module", "op")}
        [taken] = data["op"]["Torch.view_as_real.0.forward"]["input_args"]
        [given] = data["module"]["Module.turn.Turn.forward.0"]["output"]
        for record in (taken, given):
            self.assertEqual(list(record), RECORD)
            self.assertEqual([record["dtype"], record["Max"], record["Min"]],
                             ["torch.complex64", size.max().item(), size.min().item()])
            self.assertAlmostEqual(record["Mean"], size.mean().item(), delta=1e-12)
            self.assertAlmostEqual(record["Norm"], size.norm().item(), delta=1e-12)
        # A gradient of this loss is twice the value.
        [back] = data["module"]["Module.turn.Turn.backward.0"]["input"]
        self.assertAlmostEqual(back["Norm"], 2 * given["Norm"], delta=1e-5)
        for t, largest in ((torch.tensor([3 + 4j, 0], dtype=torch.complex32), 5), (torch.tensor([math.inf - 1j]), math.inf),
                           (torch.tensor([3 + 4j], dtype=torch.complex128).conj(), 5)):
            self.assertEqual(taken_statistics(t)[0].item(), largest)

    def test_a_step_that_fails_leaves_no_dump(self):
        probe = Probe(self.model, self.out)
        with self.assertRaises(IndexError), probe.step():
            self.model(torch.full((1, 1), 99))
        self.assertFalse((self.out / "step0/rank/dump.json").exists())
        with probe.step():
            self.loss(self.model).backward()
        self.assertIn("Module.head.Linear.backward.0", self.dump()["data"])

    def test_a_folder_holds_one_run(self):
        self.train(2, {})
        before = (self.out / "step0/rank/dump.json").read_bytes()
        with self.assertRaisesRegex(FileExistsError, "holds a dump already: .*step0"):
            self.train(1, {})
        self.assertEqual((self.out / "step0/rank/dump.json").read_bytes(), before)

    def test_removed_hooks_see_nothing(self):
        probe = Probe(self.model, self.out)
        probe.remove()
        with self.assertWarnsRegex(RuntimeWarning, "saw no call"), probe.step():
            self.loss(self.model).backward()
        self.assertEqual(self.dump()["data"], {})

    def test_steps_before_a_kill_are_whole(self):
        program = (f"import os, signal, sys\nsys.path[:0] = {sys.path[:2]!r}\nimport torch\n"
                   "from aloft_probe import Probe\nmodel = torch.nn.Sequential(torch.nn.Linear(4, 4))\n"
                   f"probe = Probe(model, {str(self.out)!r})\n"
                   "for step in range(3):\n    with probe.step():\n        y = model(torch.ones(2, 4))\n"
                   "        if step == 2: os.kill(os.getpid(), signal.SIGKILL)\n        y.sum().backward()\n")
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ})
        self.assertEqual(done.returncode, -signal.SIGKILL)
        for step in (0, 1):
            self.assertIn("Module.0.Linear.parameters_grad.0", self.dump(step)["data"])
        self.assertFalse((self.out / "step2/rank/dump.json").exists())

    def test_unknown_words_are_refused(self):
        for wrong in ({"task": "overflow"}, {"level": "L2"}):
            with self.assertRaisesRegex(ValueError, "one of"):
                Probe(self.model, self.out, **wrong)


if __name__ == "__main__":
    unittest.main()
