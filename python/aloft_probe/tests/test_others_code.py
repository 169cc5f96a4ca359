"""The collector in programs that do unusual things: what they compute stays, and they go on."""
import copy
import dataclasses
import io
import json
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
try:
    import torch
except ImportError:
    torch = None

if torch:
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    from aloft_probe import Probe, attempts, entries, files

    class Asks(nn.Module):
        """Computes something else where it is given one tensor twice."""

        def forward(self, q, k):
            return q * 2 if q is k else q + k + 1

    class Reads(nn.Module):
        def forward(self, x):
            return x * x.scale

    class Within(nn.Module):
        def __init__(self, part, *given):
            super().__init__()
            self.up, self.part, self.given = nn.Linear(8, 8), part, given

        def forward(self, x):
            y = self.up(x)
            y.scale = 3.0
            result = self.part(*[y for _ in self.given])
            return result[0] if isinstance(result, tuple) else result


@unittest.skipUnless(torch, "torch is not installed")
class OthersCode(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.out = Path(holder.name) / "probed"
        torch.manual_seed(0)
        self.probes = 0

    def anew(self):
        """The folder of the next probe: one that holds a dump is refused."""
        self.probes += 1
        self.out = self.out.parent / f"probed{self.probes}"
        return self.out

    def dump(self, step=0):
        return json.loads((self.out / f"step{step}" / "rank" / "dump.json").read_text())["data"]

    def probed(self, model, x, **options):
        """One step; gives what the model gave."""
        probe = Probe(model, self.anew(), **options)
        with probe.step():
            y = model(x)
            y.sum().backward()
        probe.remove()
        return y

    def test_a_tensor_that_is_passed_twice_stays_one(self):
        attention = nn.MultiheadAttention(8, 2, batch_first=True)
        for part, given in ((Asks(), "qk"), (Reads(), "x"), (attention, "qkv")):
            model, x = Within(part, *given), torch.randn(2, 3, 8)
            y = model(x)
            y.sum().backward()
            wanted = [p.grad.clone() for p in model.parameters()]
            for level in ("module", "op", "mix"):
                model.zero_grad()
                self.assertTrue(torch.equal(self.probed(model, x, level=level), y), (type(part).__name__, level))
                for p, g in zip(model.parameters(), wanted):
                    self.assertTrue(torch.equal(p.grad, g), (type(part).__name__, level))

    def test_the_gradient_of_a_tensor_that_is_passed_twice_is_the_sum(self):
        self.probed(Within(Asks(), *"qk"), torch.randn(2, 8))
        gradients = self.dump()["Module.part.Asks.backward.0"]["output"]
        self.assertEqual([g and g["Max"] for g in gradients], [2.0])

    def test_what_a_call_reads_of_its_own_results_is_not_what_flows_into_it(self):
        class Draws(nn.Module):
            """The encoder of a VAE; it also keeps a loss, which it has read itself."""

            def __init__(self):
                super().__init__()
                self.mean, self.log = nn.Linear(8, 4), nn.Linear(8, 4)

            def forward(self, x):
                mean, log = self.mean(x), self.log(x)
                self.kept = log.exp().mean()
                return mean + torch.exp(0.5 * log) * 0.3, mean, log, mean.square().mean(), self.own(log)

            def own(self, log):
                loss = log.square().sum()
                self.loss_twice = loss * 2
                return loss

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.draws, self.back = Draws(), nn.Linear(4, 8)

            def forward(self, x):
                drawn, self.a, log, square, loss = self.draws(x)
                self.outside = [v * 1.0 for v in (drawn, self.a, log)]
                for v in self.outside:
                    v.retain_grad()
                drawn, mean, log = self.outside
                return (self.back(drawn) - x).square().mean() + (mean * 3 + log).sum() + square, loss

        for level in ("module", "mix"):
            model, x = Model(), torch.randn(5, 8)
            loss, last = model(x)
            torch.autograd.backward([loss + model.draws.kept + model.draws.loss_twice, last], [None, torch.tensor(5.0)])
            wanted = [p.grad.clone() for p in model.parameters()]
            model.zero_grad()
            probe = Probe(model, self.anew(), level=level)
            with probe.step():
                loss, last = model(x)
                torch.autograd.backward([loss + model.draws.kept + model.draws.loss_twice, last],
                                        [None, torch.tensor(5.0)])
            probe.remove()
            taken = self.dump()["Module.draws.Draws.backward.0"]["input"]
            outside = [v.grad.norm().item() for v in model.outside] + [1, 5]
            self.assertEqual(len(taken), len(outside))
            for record, norm in zip(taken, outside):
                self.assertAlmostEqual(record["Norm"], norm, delta=1e-6)
            for p, g in zip(model.parameters(), wanted):
                self.assertTrue(torch.equal(p.grad, g))
            if level == "mix":
                self.assertNotIn("Torch.ones_like.0.forward", self.dump())

    def test_a_result_that_the_call_alone_reads_has_no_gradient(self):
        class Router(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(4, 4)

            def forward(self, x):
                share = torch.softmax(self.up(x), -1)
                return x * share, share

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.router = Router()

            def forward(self, x):
                return self.router(x)[0]

        self.probed(Model(), torch.randn(2, 4))
        [of_result] = self.dump()["Module.router.Router.backward.0"]["input"]
        self.assertEqual(of_result["Mean"], 1)

    def test_a_call_that_fails_within_a_program_that_goes_on(self):
        class Part(nn.Module):
            def __init__(self, ends):
                super().__init__()
                self.inner, self.ends = nn.Linear(4, 4), ends

            def forward(self, x):
                y = self.inner(x)
                if self.ends:
                    raise self.ends
                return torch.relu(y)

        class Tries(nn.Module):
            def __init__(self, ends):
                super().__init__()
                self.a, self.b = Part(ends), Part(None)

            def forward(self, x):
                try:
                    return self.a(x)
                except (ValueError, RuntimeError):
                    y = self.b(x * 2)  # what is called in the handler ends well
                try:
                    torch.add(y, "text")
                except TypeError:
                    pass
                try:
                    self.b(torch.ones(3))
                except RuntimeError:
                    return torch.tanh(y) + self.b(x)

        class Model(nn.Module):
            def __init__(self, ends):
                super().__init__()
                self.up, self.tries, self.last = nn.Linear(4, 4), Tries(ends), nn.Linear(4, 2)

            def forward(self, x):
                return self.last(self.tries(self.up(x)))

        for ends in (ValueError("no"), RuntimeError()):
            for level in ("module", "mix"):
                self.probed(Model(ends), torch.randn(2, 4), level=level)
                data = self.dump()
                parents = json.loads((self.out / "step0/rank/construct.json").read_text())
                self.assertEqual(set(parents), {entry for entry in data if "parameters_grad" not in entry})
                inner = "Module.tries.Tries.forward.0"
                of_modules = {entry: parent for entry, parent in parents.items()
                              if entry.startswith("Module.") and ".forward." in entry}
                self.assertEqual(of_modules, {
                    "Module.up.Linear.forward.0": None, inner: None, "Module.last.Linear.forward.0": None,
                    "Module.tries.a.Part.forward.0": inner,
                    "Module.tries.a.inner.Linear.forward.0": "Module.tries.a.Part.forward.0",
                    **{f"Module.tries.b.Part.forward.{i}": inner for i in range(3)},
                    **{f"Module.tries.b.inner.Linear.forward.{i}": f"Module.tries.b.Part.forward.{i}" for i in range(3)}})
                failed = data["Module.tries.a.Part.forward.0"]
                self.assertEqual((len(failed["input_args"]), failed["output"]), (1, []))
                self.assertNotIn("Module.tries.a.Part.backward.0", data)
                self.assertIn("Module.tries.b.Part.backward.0", data)
                if level == "mix":
                    self.assertEqual(parents["Torch.tanh.0.forward"], inner)
                    self.assertEqual(parents["Torch.relu.0.forward"], "Module.tries.b.Part.forward.0")
                    self.assertNotIn("Torch.add.0.forward", data)

    def test_values_are_written_so_that_any_reader_takes_them(self):
        class Takes(nn.Module):
            def forward(self, x, **others):
                return x * 2

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.part, self.values = Takes(), {}

            def forward(self, x):
                return self.part(x, **self.values)

        rows = {"i": (7, 7), "true": (True, True), "low": (-2 ** 63, -2 ** 63), "high": (2 ** 64 - 1, 2 ** 64 - 1),
                "above": (2 ** 64, "18446744073709551616"), "below": (-2 ** 63 - 1, "(-9223372036854775809)"),
                "long": (10 ** 400, "1" + "0" * 400), "longest": (1 << 20_000, "0x1" + "0" * 5000), "half": (0.5, 0.5),
                "lone": ("\ud800 bad", "\\ud800 bad"), "low_half": ("a\udfff", "a\\udfff"),
                "both": ("\U0001f600", "\U0001f600"), "slash": ("\\ud800\\", "\\ud800\\"),
                "turned": ("\udc00\ud800", "\\udc00\\ud800"), "\udc80key": (1, 1), "of": ({"\udc80": 2}, None)}
        model = Model()
        model.values = {key: value for key, (value, _) in rows.items()}
        self.probed(model, torch.randn(2, 4, requires_grad=True))
        text = (self.out / "step0/rank/dump.json").read_text(encoding="ascii")
        data = json.loads(text)
        json.dumps(data, ensure_ascii=False).encode()  # no half of a character is left
        kwargs = data["data"]["Module.part.Takes.forward.0"]["input_kwargs"]
        for key, (_, written) in rows.items():
            if written is not None:
                got = kwargs[key.replace("\udc80", "\\udc80")]["value"]
                self.assertEqual((type(got), got), (type(written), written), key)
        self.assertEqual(kwargs["of"], {"\\udc80": {"type": "int", "value": 2}})

    def test_results_that_raise_leave_the_rest_of_the_record(self):
        class Closed(tuple):
            def __iter__(self):
                raise RuntimeError("closed to all but its owner")

        class Gives(nn.Module):
            def forward(self, x, *others):
                return Closed((x * 2,))

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.part = nn.Linear(4, 4), Gives()

            def forward(self, x):
                return self.part(self.up(x), Closed((1,)))[0]

        attempts.TOLD.clear()
        with self.assertWarnsRegex(RuntimeWarning, "closed to all"):
            self.probed(Model(), torch.randn(2, 4))
        data, parents = self.dump(), json.loads((self.out / "step0/rank/construct.json").read_text())
        record = data["Module.part.Gives.forward.0"]
        self.assertEqual((record["input_args"][1], record["output"]), ({"type": "Closed", "value": ""}, []))
        self.assertIsNotNone(record["input_args"][0]["Max"])
        self.assertEqual(set(parents) - set(data), set())

    def test_every_record_has_a_file_of_its_own(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = nn.ModuleDict({name: nn.Linear(4, 4) for name in ("a+b", "a_b", "a b", "n" * 300,
                                                                               "n" * 300 + "m")})

            def forward(self, x):
                for part in self.parts.values():
                    x = part(x)
                return x

        self.probed(Model(), torch.randn(2, 4), task="tensor")
        seen = {}

        def look(v):
            if isinstance(v, dict) and "data_name" in v:
                self.assertNotIn(v["data_name"], seen)
                seen[v["data_name"]] = v
                t = torch.load(self.out / "step0" / "rank" / "dump_tensor_data" / v["data_name"], weights_only=True)
                self.assertEqual(t.max().item(), v["Max"])
            elif isinstance(v, (dict, list)):
                for part in v.values() if isinstance(v, dict) else v:
                    look(part)

        look(self.dump())
        self.assertEqual(len(seen), 5 * 8 - 1)  # the first takes what needs no gradient
        self.assertEqual(files.name_of_file("Module.up.Linear.forward.0.input.0"),
                         "Module.up.Linear.forward.0.input.0.pt")

    def test_tensors_that_torch_cannot_look_into_have_no_figures(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.same, self.up = nn.Embedding(10, 4, sparse=True), nn.Identity(), nn.Linear(4, 4)

            def forward(self, ids):
                for of in ("uint16", "uint32", "uint64", "float8_e4m3fn"):
                    if hasattr(torch, of):
                        self.same(ids.float().to(getattr(torch, of)) if "float" in of else ids.to(getattr(torch, of)))
                return self.up(self.table(ids))

        for task in ("statistics", "tensor"):
            self.probed(Model(), torch.tensor([1, 2, 2]), task=task)
            dump = self.dump()
            gradient = dump["Module.table.Embedding.parameters_grad.0"]["weight"][0]
            self.assertEqual((gradient["shape"], gradient["Max"]), ([10, 4], None))
            if hasattr(torch, "uint16"):
                self.assertEqual(dump["Module.same.Identity.forward.0"]["output"][0]["Max"], 2)
            self.assertIsNotNone(dump["Module.up.Linear.forward.0"]["output"][0]["Max"])

    def test_transformed_functions_go_on(self):
        model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(3, 4)
        parameters = {name: p.detach() for name, p in model.named_parameters()}

        def loss(parameters):
            return torch.func.functional_call(model, parameters, (x,)).sum()

        wanted = torch.func.grad(loss)(parameters)
        probe = Probe(model, self.out)
        with probe.step():
            got = torch.func.grad(loss)(parameters)
            self.assertTrue(torch.equal(torch.func.vmap(model)(x), model(x)))
        for name, g in wanted.items():
            self.assertTrue(torch.equal(g, got[name]), name)

    def test_copies_of_a_model_are_not_watched(self):
        model, x = nn.Sequential(nn.Linear(4, 4)), torch.randn(3, 4)
        probe = Probe(model, self.out)
        average = copy.deepcopy(model)
        saved = io.BytesIO()
        torch.save(model, saved)
        saved.seek(0)
        with probe.step():
            model(x).sum().backward()
            average(x)
            self.assertTrue(torch.equal(torch.load(saved, weights_only=False)(x), model(x)))
        forward = [entry for entry in self.dump() if ".forward." in entry]
        self.assertEqual(forward, ["Module.0.Linear.forward.0", "Module.0.Linear.forward.1"])

    def test_at_level_op_neither_the_probe_nor_the_optimizer_is_the_model(self):
        model = nn.Sequential(nn.Linear(4, 4))
        for optimizer in (torch.optim.AdamW(model.parameters(), foreach=False),
                          torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, foreach=False)):
            probe = Probe(model, self.anew(), level="op", optimizer=optimizer)
            for step in range(2):
                with probe.step():
                    probe.loss(model(torch.ones(2, 4)).sum()).backward()
                    optimizer.step()
                calls = [entry.rsplit(".", 2)[0] for entry in self.dump(step) if entry.endswith(".forward")]
                self.assertEqual(calls, ["Torch.ones", "Functional.linear", "Tensor.sum"])
            probe.remove()

    def test_parameters_may_be_complex(self):
        for dtype, of in (("complex64", "SGD"), ("complex128", "Adam")):
            model = nn.Sequential(nn.Linear(4, 4, dtype=getattr(torch, dtype)))
            optimizer = getattr(torch.optim, of)(model.parameters(), lr=0.1)
            before = [p.detach().clone() for p in model.parameters()]
            probe = Probe(model, self.anew(), optimizer=optimizer)
            with warnings.catch_warnings(), probe.step():
                warnings.simplefilter("error")
                probe.loss(model(torch.randn(2, 4, dtype=getattr(torch, dtype))).abs().sum()).backward()
                optimizer.step()
            probe.remove()
            dump = json.loads((self.out / "step0/rank/dump.json").read_text())
            wanted = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]).item()
            self.assertAlmostEqual(dump["training"]["gradient_norm"], wanted, delta=1e-5)
            update = (model[0].weight - before[0]).abs()
            record = dump["data"]["Module.0.Linear.parameters_update.0"]["weight"][0]
            self.assertAlmostEqual(record["Norm"], update.norm().item(), delta=1e-6)
            self.assertAlmostEqual(record["Max"], update.max().item(), delta=1e-6)

    def test_nested_tensors_have_no_figures(self):
        for layout in (torch.strided, torch.jagged):
            model = nn.Sequential(nn.Linear(4, 4))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch's, of what is new
                x = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=layout)
            for level, task in (("mix", "statistics"), ("module", "tensor")):
                probe = Probe(model, self.anew(), level=level, task=task)
                with probe.step():
                    torch.nested.to_padded_tensor(model(x), 0.0).sum().backward()
                probe.remove()
                data = self.dump()
                for record in (data["Module.0.Linear.forward.0"]["input_args"][0],
                               data["Module.0.Linear.forward.0"]["output"][0]):
                    self.assertEqual((record["shape"], record["Max"]), ([], None))
                self.assertEqual(data["Module.0.Linear.parameters_grad.0"]["weight"][0]["shape"], [4, 4])

    def test_values_that_raise_do_not_end_the_program(self):
        class Broken(torch.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                raise RuntimeError("only its owner looks into it")

        class Key:
            def __str__(self):
                raise RuntimeError("no text")

        @dataclasses.dataclass
        class Late:
            made: object = None

            def __getattribute__(self, name):
                if name == "made":
                    raise RuntimeError("not made yet")
                return super().__getattribute__(name)

        class Part(nn.Module):
            def forward(self, x, *others):
                ring = []
                ring.append(ring)
                return x * 2, ring

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.part = nn.Linear(4, 4), Part()

            def forward(self, x):
                broken = torch.Tensor._make_wrapper_subclass(Broken, (2, 2))
                return self.part(self.up(x), broken, {Key(): 1}, Late(), 5)[0]

        class Rateless(torch.optim.Optimizer):
            def step(self):
                for p in self.param_groups[0]["params"]:
                    p.data -= p.grad

        for level in ("module", "mix"):
            model, x = Model(), torch.randn(2, 4)
            optimizer = Rateless(model.parameters(), {"weight_decay": None})
            attempts.TOLD.clear()
            probe = Probe(model, self.anew(), level=level, optimizer=optimizer)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                for _ in range(2):
                    with probe.step():
                        probe.loss(model(x).sum()).backward()
                        optimizer.step()
            probe.remove()
            self.assertEqual([word for word in ("only its owner", "no text", "not made yet")
                              if sum(word in str(w.message) for w in said) == 1],
                             ["only its owner", "no text", "not made yet"])
            self.assertEqual({w.filename for w in said}, {__file__})
            data = self.dump(1)
            taken = data["Module.part.Part.forward.0"]["input_args"]
            self.assertEqual((taken[1]["shape"], taken[1]["Max"], taken[4]["value"]), ([2, 2], None, 5))
            self.assertIsNotNone(taken[0]["Max"])
            self.assertIn("Module.up.Linear.parameters_update.0", data)
            self.assertIn("Module.part.Part.backward.0", data)

    def test_passes_without_gradients_of_modules_are_said(self):
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        x = torch.randn(3, 4, requires_grad=True)
        for reentrant in (True, False):
            probe = Probe(model, self.anew())
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                with probe.step():
                    checkpoint(model, x, use_reentrant=reentrant).sum().backward()
            probe.remove()
            said = [str(w.message) for w in said if "no gradient flowed" in str(w.message)]
            self.assertEqual(len(said), 1 if reentrant else 0)

    def test_modules_are_called_what_the_program_likes(self):
        class Model(nn.Module):
            def __init__(self, names):
                super().__init__()
                self.parts = nn.ModuleDict({name: nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for name in names})

            def forward(self, x):
                for part in self.parts.values():
                    x = part(x)
                return x

        def plain(name, names):
            for i, own in enumerate(names):
                name = name.replace(f".parts.{own}.", f".parts.part{i}.") if name else name
            return name

        odd = ["forward_enc", "backward_enc", "backward", "backward0", "parameters_grad"]
        for level in ("module", "mix"):
            found = []
            for names in (odd, [f"part{i}" for i in range(len(odd))]):
                self.probed(Model(names), torch.randn(2, 4), level=level)
                parents = json.loads((self.out / "step0/rank/construct.json").read_text())
                found.append({plain(k, names): plain(v, names) for k, v in parents.items()})
                self.assertEqual({plain(k, names) for k in self.dump()} - set(found[-1]),
                                 {plain(k, names) for k in self.dump() if k.endswith(".parameters_grad.0")})
            self.assertEqual(found[0], found[1])
            self.assertEqual(found[0]["Module.parts.part0.0.Linear.backward.0"],
                             "Module.parts.part0.Sequential.backward.0")
        self.assertEqual(entries.turned("Module.forward.forward_enc.Forward.forward.12", "backward"),
                         "Module.forward.forward_enc.Forward.backward.12")
        self.assertEqual(entries.turned("Tensor.forward.3.backward", "forward"), "Tensor.forward.3.forward")

    def test_names_hide_no_missing_backward_pass(self):
        model = nn.Sequential()
        model.add_module("backward_enc", nn.Linear(4, 4))
        with self.assertWarnsRegex(RuntimeWarning, "no backward"), Probe(model, self.out).step():
            model(torch.randn(2, 4))


if __name__ == "__main__":
    unittest.main()
