"""No bit of what a program computes changes, and what is shown of a call is what flows through that call."""
import json
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python/aloft_probe"))
try:
    import torch
except ImportError:
    torch = None
try:
    import transformers
except ImportError:
    transformers = None

LEVELS = ("module", "op", "mix")

if torch:
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    from aloft_probe import Probe

    class RMSNorm(nn.Module):
        def __init__(self, dim=16):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(dim))

        def forward(self, x):
            return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.g = nn.Linear(16, 16)

        def forward(self, x):
            return x * torch.sigmoid(self.g(x)) + x.tanh()

    class Products(nn.Module):
        """Three projections of one value, which is handed on in a tuple, and given back."""

        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))

        def forward(self, given):
            x, _ = given
            return self.q(x) * self.k(x) + self.v(x), x

    class Net(nn.Module):
        """One value that a call within, the residual around it and a call that gives it back all read."""

        def __init__(self):
            super().__init__()
            self.a, self.norm, self.b, self.gate = nn.Linear(16, 16), RMSNorm(), nn.Linear(16, 16), Gate()
            self.drop, self.products = nn.Dropout(0.5), Products()

        def forward(self, x):
            h = self.a(x)
            h = h + self.b(self.norm(h))
            h = h + self.gate(h) + h.cos()
            kept = self.drop(h)
            h = h * 2 + kept.tanh() + kept * kept
            products, same = self.products((h, None))
            self.aside = (same ** 2).mean()
            return (products + same + checkpoint(self.gate, h, use_reentrant=False)).square().mean() + self.aside


def alike(a, b):
    return len(a) == len(b) and all(map(torch.equal, a, b))


@unittest.skipUnless(torch, "torch is not installed")
class Bits(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.probes = 0
        threads, is_deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        self.addCleanup(lambda: (torch.set_num_threads(threads),
                                 torch.use_deterministic_algorithms(is_deterministic)))
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)

    def trained(self, make, loss_of, level, steps):
        """(gradients of all steps, parameters behind the last) of the model that `make` makes."""
        torch.manual_seed(1)
        model = make()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        self.probes += 1
        probe = Probe(model, self.folder / f"probed{self.probes}", level=level, optimizer=optimizer) if level else None
        gradients = []
        for _ in range(steps):
            optimizer.zero_grad()
            if probe:
                with probe.step():
                    probe.loss(loss_of(model)).backward()
                    optimizer.step()
            else:
                loss_of(model).backward()
                optimizer.step()
            gradients += [p.grad.clone() for p in model.parameters() if p.grad is not None]
        return gradients, [p.detach().clone() for p in model.parameters()]

    def check(self, make, loss_of, steps):
        wanted = self.trained(make, loss_of, None, steps)
        for level in LEVELS:
            for what, a, b in zip(("gradients", "parameters"), wanted, self.trained(make, loss_of, level, steps)):
                self.assertTrue(alike(a, b), f"level {level}: {what} have other bits")

    def test_gradients_and_trained_parameters_keep_theirs(self):
        for dtype in (torch.float32, torch.bfloat16):
            for in_training in (True, False):
                x = torch.randn(33, 16, generator=torch.Generator().manual_seed(5)).to(dtype)

                def make():
                    return Net().to(dtype).train(in_training)
                with self.subTest(dtype=dtype, in_training=in_training):
                    self.check(make, lambda model: model(x), steps=3)

    @unittest.skipUnless(transformers, "transformers is not installed: models of others are not tried")
    def test_models_of_others_keep_theirs(self):
        from safetensors.torch import load_file
        transformers.utils.logging.disable_progress_bar()
        for name in ("llama3-tiny", "qwen2-tiny", "gemma2-tiny", "gpt2-tiny", "neox-serial"):
            folder = ROOT / "tests/fixtures" / name
            expected = load_file(str(folder / "expected.safetensors"))
            tokens, targets = expected["tokens"].long(), expected["targets"].long()
            for dtype in (torch.float32, torch.bfloat16):
                def make():
                    return transformers.AutoModelForCausalLM.from_pretrained(
                        folder, dtype=dtype, attn_implementation="eager").eval()

                def loss_of(model):
                    logits = model(tokens, use_cache=False).logits
                    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
                with self.subTest(model=name, dtype=dtype):
                    self.check(make, loss_of, steps=1)


@unittest.skipUnless(torch, "torch is not installed")
class ThroughACall(unittest.TestCase):
    """What is shown as the gradient of what a call took."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.out = Path(holder.name) / "probed"
        torch.manual_seed(0)

    def seen(self, model, backward):
        """The dump's entries; `backward` gets the model."""
        with Probe(model, self.out).step():
            backward(model)
        return json.loads((self.out / "step0/rank/dump.json").read_text())["data"]

    def check(self, record, wanted):
        self.assertAlmostEqual(record["Norm"], wanted.double().norm().item(), delta=1e-6 * wanted.norm().item())
        self.assertEqual(record["Max"], wanted.max().item())

    def test_it_is_the_sum_of_what_reads_it_there_and_of_nothing_else(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.gate = nn.Linear(16, 16), Gate()

            def forward(self, x):
                self.h = self.a(x)
                before = self.h.exp()
                self.given = self.gate(self.h)
                return (before + self.given + self.h * 3).square().sum()

        model, x = Model(), torch.randn(5, 16)
        data = self.seen(model, lambda model: model(x).backward())
        # The same call by itself, fed with the gradient of what it gave.
        model(x)
        h = model.h.detach().requires_grad_()
        flows = 2 * (h.exp() + model.gate(h) + h * 3).detach()
        model.gate(h).backward(flows)
        self.check(data["Module.gate.Gate.backward.0"]["output"][0], h.grad)
        self.check(data["Module.gate.Gate.backward.0"]["input"][0], flows)

    def test_what_a_call_gives_back_is_seen_where_the_result_is_read(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.same = nn.Linear(4, 4), nn.Identity()

            def forward(self, x):
                h = self.a(x)
                before = h * 5
                return (before + self.same(h) * 2 + 1).sum()

        data = self.seen(Model(), lambda model: model(torch.randn(3, 4)).backward())
        back = data["Module.same.Identity.backward.0"]
        self.assertEqual([back[side][0]["Max"] for side in ("input", "output")], [2, 2])

    def test_what_a_module_puts_aside_flows_through_it_too(self):
        class Aside(nn.Module):
            def forward(self, x):
                self.loss = (x * 3).sum()
                return x * 2

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.part = nn.Linear(4, 4), Aside()

            def forward(self, x):
                return self.part(self.a(x)).sum() + self.part.loss

        data = self.seen(Model(), lambda model: model(torch.randn(3, 4)).backward())
        self.assertEqual(data["Module.part.Aside.backward.0"]["output"][0]["Max"], 5)

    def test_backward_passes_of_every_kind_are_seen(self):
        x = torch.randn(5, 16)

        def model():
            return nn.Sequential(nn.Linear(16, 16), Gate())

        def of_list(m):
            y = m(x)
            torch.autograd.backward([y.sum(), y.square().sum()])

        def twice(m):
            loss = m(x).sum()
            loss.backward(retain_graph=True)
            loss.backward()

        def without_backward(m):
            torch.autograd.grad(m(x).sum(), list(m.parameters()))

        def by_parts(m):
            y = m(x)
            torch.autograd.grad(y.sum(), [m[1].g.weight], retain_graph=True)  # has no need of the rest
            y.sum().backward()
        for i, backward in enumerate((of_list, twice, without_backward, by_parts)):
            self.out = self.out.parent / f"probed{i}"
            entry = self.seen(model(), backward)["Module.1.Gate.backward.0"]
            self.assertEqual([entry[side][0]["shape"] for side in ("input", "output")], [[5, 16]] * 2,
                             backward.__name__)

    def test_objects_are_those_that_the_program_made(self):
        kept = []

        class Keeps(nn.Module):
            def forward(self, x):
                kept.append(x)
                return x.tanh()

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.part = nn.Linear(4, 4), Keeps()

            def forward(self, x):
                h = self.a(x)
                y = self.part(h)
                assert kept[-1] is h
                return y.sum()

        self.seen(Model(), lambda model: model(torch.randn(3, 4)).backward())
        self.assertIsNone(getattr(torch.autograd.backward, "__wrapped__", None))  # torch's own again

    def test_a_backward_pass_that_is_not_seen_to_begin_is_said(self):
        begins = torch.autograd.backward  # taken before the step
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            data = self.seen(nn.Sequential(nn.Linear(4, 4), nn.Tanh()),
                             lambda model: begins(model(torch.randn(3, 4)).sum()))
        self.assertIn("taken from torch.autograd before", " ".join(str(w.message) for w in said))
        self.assertEqual(data["Module.1.Tanh.backward.0"]["output"], [])


if __name__ == "__main__":
    unittest.main()
