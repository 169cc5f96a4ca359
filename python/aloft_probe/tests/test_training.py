"""The collector in training loops, and in models that are not as plain as others."""
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PACKAGE))
try:
    import torch
except ImportError:
    torch = None

if torch:
    from torch import nn

    from aloft_probe import Probe, statistics

    @dataclasses.dataclass
    class Result:
        logits: object
        extra: object = None

    class Odd(nn.Module):
        """Takes a tuple, gives a dictionary."""

        def forward(self, pair, flag=None):
            a, (b, c) = pair
            return {"sum": a * b + c, "none": None, "flag": flag}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.odd, self.head = nn.Linear(6, 6), Odd(), nn.Linear(6, 2)

        def forward(self, x):
            x = self.inner(torch.tanh(self.inner(x)))  # twice
            y = self.odd((x, (x * 2, torch.ones(()))))["sum"]
            return Result(self.head(y))


@unittest.skipUnless(torch, "torch is not installed")
class Loops(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.out = Path(holder.name) / "probed"
        torch.manual_seed(1)
        self.model, self.x = Net(), torch.randn(4, 6)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01, betas=(0.8, 0.9))

    def dump(self, step=0, folder=None):
        return json.loads((Path(folder or self.out) / f"step{step}/rank/dump.json").read_text())

    def loss(self, x=None):
        return (self.model(self.x if x is None else x).logits ** 2).mean()

    def weights(self):
        return [p.detach().clone() for p in self.model.parameters()]

    def test_the_rate_is_that_of_the_step_whatever_a_schedule_sets_behind_it(self):
        schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda i: 0.5 ** i)
        probe = Probe(self.model, self.out, optimizer=self.optimizer)
        for step in range(2):
            with probe.step():
                self.loss().backward()
                self.optimizer.step()
                schedule.step()
            self.optimizer.zero_grad()
            self.assertEqual(self.dump(step)["training"]["learning_rate"], 0.01 * 0.5 ** step)

    def said(self, act):
        """The text of the one warning that `act` gives rise to."""
        with warnings.catch_warnings(record=True) as all_said:
            warnings.simplefilter("always")
            act()
        self.assertEqual(len(all_said), 1, [str(w.message) for w in all_said])
        self.assertIs(all_said[0].category, RuntimeWarning)
        self.assertEqual(all_said[0].filename, __file__)  # the line of the loop, and not one of the probe's
        return str(all_said[0].message)

    def test_what_a_loop_leaves_out_is_said(self):
        probe = Probe(self.model, self.out, at=[0, 7, 8], optimizer=self.optimizer)
        self.assertIn("without `with`", self.said(lambda: (probe.step(), None)[1]))
        self.assertIn("outside of `with probe.step():`", self.said(lambda: probe.loss(self.loss())))

        def step_outside():
            with probe.step():
                probe.loss(self.loss()).backward()
            self.optimizer.step()
        self.assertIn("the optimizer made no step within", self.said(step_outside))
        self.assertIn("never made: 7, 8; there were 1", self.said(probe.remove))
        self.assertTrue((self.out / "step0/rank/dump.json").exists())

        def other_model():
            with Probe(self.model, self.out / "other").step():
                Net()(self.x)
        self.assertIn("no call of the model", self.said(other_model))

        def no_backward():
            probe = Probe(self.model, self.out / "forward")
            for _ in range(2):  # said once
                with probe.step():
                    probe.loss(self.loss())
            with probe.step(), torch.no_grad():
                self.model(self.x)
        self.assertIn("no backward() was seen", self.said(no_backward))

        def right():
            again = Probe(self.model, self.out / "right", at=[0], optimizer=self.optimizer)
            with again.step():
                again.loss(self.loss()).backward()
                self.optimizer.step()
            again.remove()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            right()

    def test_two_probes_in_one_folder(self):
        first = Probe(self.model, self.out)
        self.assertIn("two probes write into", self.said(lambda: Probe(self.model, str(self.out) + "/.").remove()))
        first.remove()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Probe(self.model, self.out).remove()  # one behind the other
            Probe(self.model, self.out / "another").remove()

    def step_of(self, probe):
        with probe.step():
            self.loss().backward()

    def test_another_process_has_the_folder_alone(self):
        program = (f"import os, signal, sys\nsys.path.insert(0, {str(PACKAGE)!r})\nimport torch\n"
                   "from aloft_probe import Probe\nmodel = torch.nn.Sequential(torch.nn.Linear(4, 4))\n"
                   f"with Probe(model, {str(self.out)!r}).step():\n    print('open', flush=True)\n"
                   "    sys.stdin.readline()\n    os.kill(os.getpid(), signal.SIGKILL)\n")
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            self.assertEqual(other.stdout.readline(), b"open\n")
            with self.assertRaisesRegex(BlockingIOError, f"process {other.pid} on"):
                self.step_of(Probe(self.model, self.out))
            self.assertTrue((self.out / "step0/rank").is_dir())
            other.stdin.close()
        # What the dead process left is no obstacle, and goes.
        self.assertTrue((self.out / "rank.lock").exists())
        probe = Probe(self.model, self.out, at=[1])
        for _ in range(2):
            self.step_of(probe)
        second = Probe(self.model, str(self.out) + "/.", at=[1])
        self.assertEqual(sorted(p.name for p in self.out.iterdir()), ["rank.lock", "step1"])
        probe.remove()
        second.unasked.at = None
        self.assertEqual(sorted(p.name for p in self.out.iterdir()), ["step1"])

    def test_file_systems_without_locks_keep_nobody_out(self):
        import errno
        import fcntl
        from unittest import mock
        for number in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            with mock.patch.object(fcntl, "flock", side_effect=OSError(number, os.strerror(number))):
                self.out = self.out.parent / f"probed{number}"
                probe = Probe(self.model, self.out)
                self.assertIn(os.strerror(number), self.said(lambda: self.step_of(probe)))
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    self.step_of(probe)
                probe.remove()
            self.assertEqual(sorted(p.name for p in self.out.iterdir()), ["step0", "step1"])
            self.assertTrue((self.out / "step1/rank/dump.json").exists())

    def test_words_of_the_command_line(self):
        for at, steps in (("0,4-6", {0, 4, 5, 6}), ("3", {3})):
            probe = Probe(self.model, self.out, at=at, level="L1")
            self.assertEqual((probe.at, probe.level), (steps, "op"))
            probe.unasked.at = None
            probe.remove()
        self.assertEqual(Probe(self.model, self.out, level="L0").level, "module")

    def test_what_is_no_training_is_refused(self):
        for wrong, error, word in ((dict(model=self.loss), TypeError, "no torch.nn.Module"),
                                   (dict(at=[-1]), ValueError, "counted from 0"),
                                   (dict(at=[1.5]), TypeError, "whole numbers"),
                                   (dict(at=object()), TypeError, "such as"),
                                   (dict(at="6-4"), ValueError, "such as"),
                                   (dict(at="one"), ValueError, "such as"),
                                   (dict(model=Net), TypeError, r"make one: Net\("),
                                   (dict(optimizer=torch.optim.SGD), TypeError, r"make one: SGD\("),
                                   (dict(optimizer=self.optimizer, scaler=object()), TypeError, "GradScaler"),
                                   (dict(optimizer=torch.optim.SGD(Net().parameters(), 1)), ValueError, "none of the")):
            with self.subTest(word), self.assertRaisesRegex(error, word):
                Probe(**{"model": self.model, "out": self.out, **wrong})
        one = Probe(self.model, self.out, at=3)
        self.assertEqual(one.at, {3})
        one.unasked.at = None  # nothing is to be said of it
        probe = Probe(self.model, self.out)
        with self.assertRaisesRegex(TypeError, "before .item"):
            probe.loss(0.5)
        with self.assertRaisesRegex(ValueError, "one number"):
            probe.loss(torch.ones(4))

    def test_a_model_that_is_compiled_behind_the_probe_is_refused(self):
        probe = Probe(self.model, self.out)
        compiled = torch.compile(lambda x: self.model(x).logits, backend="eager")
        with self.assertRaisesRegex(TypeError, "torch.compile has made"), probe.step():
            compiled(self.x).mean().backward()
        self.assertFalse((self.out / "step0/rank/dump.json").exists())
        with probe.step():
            self.loss().backward()
        self.assertTrue((self.out / "step0/rank/dump.json").exists())

    def test_what_the_optimizer_does_is_written(self):
        probe = Probe(self.model, self.out, optimizer=self.optimizer)
        before = dict(zip((n for n, _ in self.model.named_parameters()), self.weights()))
        with probe.step():
            loss = probe.loss(self.loss())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1e-3)
            self.optimizer.step()
        dump = self.dump()
        training = dump["training"]
        self.assertEqual(training["optimizer"]["kind"], "adamw")
        self.assertEqual(training["optimizer"]["betas"], [0.8, 0.9])
        self.assertEqual([training["learning_rate"], training["skipped"]], [0.01, False])
        self.assertAlmostEqual(training["loss"], loss.item(), delta=1e-7)
        self.assertAlmostEqual(training["gradient_norm"], 1e-3, delta=1e-6)  # behind the clipping
        weight = dict(self.model.named_parameters())["head.weight"]
        record = dump["data"]["Module.head.Linear.parameters_update.0"]["weight"][0]
        self.assertAlmostEqual(record["Norm"], (weight - before["head.weight"]).double().norm().item(), delta=1e-9)

    def test_an_optimizer_that_calls_another_steps_once(self):
        class Own(torch.optim.SGD):
            def step(self, closure=None):
                super().step(closure)
        optimizer = Own(self.model.parameters(), lr=0.01)
        probe = Probe(self.model, self.out, optimizer=optimizer)
        with probe.step():
            self.loss().backward()
            wanted = torch.cat([p.grad.flatten() for p in self.model.parameters()]).norm().item()
            optimizer.step()
        self.assertAlmostEqual(self.dump()["training"]["gradient_norm"], wanted, delta=1e-6)
        self.assertNotIn("Module.head.Linear.parameters_update.1", self.dump()["data"])

    def test_gradients_that_a_closure_makes_are_those_of_the_step(self):
        for made in (lambda: torch.optim.SGD(self.model.parameters(), lr=0.01),
                     lambda: torch.optim.LBFGS(self.model.parameters(), lr=0.01, max_iter=3)):
            for by_name in (False, True):
                optimizer, out = made(), f"{self.out}-{made().__class__.__name__}-{by_name}"
                probe = Probe(self.model, out, optimizer=optimizer)
                norms = []

                def closure():
                    optimizer.zero_grad()
                    loss = self.loss()
                    loss.backward()
                    norms.append(torch.cat([p.grad.flatten() for p in self.model.parameters()]).norm().item())
                    return loss
                with probe.step():
                    closure()  # what is there before is not what the step takes
                    norms.clear()
                    with torch.no_grad():
                        self.x *= 1.5
                    optimizer.step(closure=closure) if by_name else optimizer.step(closure)
                self.assertAlmostEqual(self.dump(folder=out)["training"]["gradient_norm"], norms[0], delta=1e-5)
                probe.remove()

    def test_a_scaler_leaves_steps_out(self):
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 10)
        probe = Probe(self.model, self.out, optimizer=self.optimizer, scaler=scaler)
        for x in (self.x, self.x * float("inf")):
            with probe.step():
                scaler.scale(probe.loss(self.loss(x))).backward()
                scaler.step(self.optimizer)
                scaler.update()
            self.optimizer.zero_grad()
        first, second = self.dump(0), self.dump(1)
        self.assertEqual([d["training"]["skipped"] for d in (first, second)], [False, True])
        self.assertEqual(first["training"]["loss_scale"], 1024)
        self.assertEqual(second["training"]["loss"], "nan")
        update = second["data"]["Module.head.Linear.parameters_update.0"]["weight"][0]
        self.assertEqual([update["Max"], update["Norm"], update["zeros"]], [0, 0, 12])
        # Gradients are those of the scaled loss, what the optimizer takes is not.
        grad = first["data"]["Module.head.Linear.parameters_grad.0"]["bias"][0]["Norm"]
        self.assertGreater(grad, first["training"]["gradient_norm"])

    def test_of_several_backward_passes_the_sum_is_written(self):
        probe = Probe(self.model, self.out, optimizer=self.optimizer)
        with probe.step():
            for part in self.x.split(2):
                (self.loss(part) / 2).backward()
            wanted = self.model.head.weight.grad.double().norm().item()
            self.optimizer.step()
        data = self.dump()["data"]
        self.assertAlmostEqual(data["Module.head.Linear.parameters_grad.0"]["weight"][0]["Norm"], wanted, delta=1e-9)
        self.assertNotIn("Module.head.Linear.parameters_grad.1", data)
        self.assertIn("Module.head.Linear.forward.1", data)

    def test_gradients_that_are_used_up_within_the_pass_are_written(self):
        probe = Probe(self.model, self.out)
        norms = {}

        def use(p):
            norms[p] = p.grad.double().norm().item()
            p.grad = None
        for p in self.model.parameters():
            p.register_post_accumulate_grad_hook(use)
        with probe.step():
            self.loss().backward()
        data = self.dump()["data"]
        self.assertAlmostEqual(data["Module.head.Linear.parameters_grad.0"]["weight"][0]["Norm"],
                               norms[self.model.head.weight], delta=1e-9)

    def test_gradients_that_are_gone_leave_no_entry(self):
        uses = [p.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))
                for p in self.model.head.parameters()]
        with Probe(self.model, self.out).step():
            self.loss().backward()
        self.assertEqual(len(uses), 2)
        self.assertEqual([entry for entry in self.dump()["data"] if "parameters_grad" in entry],
                         ["Module.inner.Linear.parameters_grad.0"])

    def checked(self, model, change, make_gradients, new=(), gone=()):
        """A step of a model that is changed behind the probe: every gradient and the norm are those that the optimizer
        takes."""
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
        probe = Probe(model, self.out, optimizer=optimizer)
        for step in range(2):
            if step == 1:
                change(model, optimizer)
            with probe.step():
                make_gradients(probe.loss(model(self.x).square().mean()), model)
                wanted = {name: p.grad.double().norm().item() for name, p in model.named_parameters()
                          if p.grad is not None}
                optimizer.step()
            optimizer.zero_grad()
        probe.remove()
        dump = self.dump(1)
        found = {}
        for entry, records in dump["data"].items():
            if entry.endswith(".parameters_grad.0"):
                path = entry[len("Module."):].rsplit(".", 3)[0]
                found.update({f"{path}.{own}": record[0]["Norm"] for own, record in records.items()})
        self.assertEqual(sorted(found), sorted(wanted))
        for name, norm in wanted.items():
            self.assertAlmostEqual(found[name], norm, delta=1e-9, msg=name)
        self.assertAlmostEqual(dump["training"]["gradient_norm"], sum(n ** 2 for n in wanted.values()) ** 0.5, delta=1e-6)
        self.assertEqual([name for name in new if f"Module.{name}.forward.0" not in dump["data"]], [])
        self.assertFalse(any(module._forward_hooks for module in (*model.modules(), *gone)))

    def test_what_is_new_in_a_model_is_seen(self):
        def unfreeze(model, optimizer):
            model[0].requires_grad_(True)
            optimizer.add_param_group({"params": list(model[0].parameters())})

        def new_head(model, optimizer):
            model[2] = nn.Sequential(nn.Linear(6, 3))
            optimizer.param_groups[0]["params"] = list(model.parameters())

        def new_parameter(model, optimizer):
            model[2].weight = nn.Parameter(model[2].weight.detach() * 2)
            optimizer.param_groups[0]["params"] = list(model.parameters())

        for i, (change, frozen, new) in enumerate(((unfreeze, True, ["0.Linear"]), (new_parameter, False, []),
                                                   (new_head, False, ["2.Sequential", "2.0.Linear"]))):
            with self.subTest(change.__name__):
                model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
                model[0].requires_grad_(not frozen)
                self.out = self.out.parent / f"probed{i}"
                self.checked(model, change, lambda loss, model: loss.backward(), new, [model[2]])

    def test_gradients_that_the_program_puts_there_itself_are_written(self):
        def of_grad(loss, model):
            parameters = list(model.parameters())
            for p, g in zip(parameters, torch.autograd.grad(loss, parameters)):
                p.grad = g

        def into_old(loss, model):
            parameters = list(model.parameters())
            for p, g in zip(parameters, torch.autograd.grad(loss, parameters)):
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
                p.grad.copy_(g)

        def late(loss, model):
            model.late.requires_grad_(True)
            (loss + model.late.square().sum()).backward()

        for i, way in enumerate((of_grad, into_old, late)):
            with self.subTest(way.__name__):
                model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
                if way is late:
                    model.late = nn.Linear(2, 2).weight
                    model.late.requires_grad_(False)
                self.out = self.out.parent / f"probed{i}"
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                probe = Probe(model, self.out)
                for step in range(2):
                    with probe.step():
                        optimizer.zero_grad(set_to_none=way is not into_old)
                        way(model(self.x).square().mean(), model)
                        optimizer.step()
                    data = self.dump(step)["data"]
                    record = data["Module.2.Linear.parameters_grad.0"]["weight"][0]
                    self.assertAlmostEqual(record["Norm"], model[2].weight.grad.norm().item(), delta=1e-6)
                    if way is late:
                        self.assertAlmostEqual(data["Module.Sequential.parameters_grad.0"]["late"][0]["Norm"],
                                               model.late.grad.norm().item(), delta=1e-6)
                probe.remove()

    def test_gradients_of_an_earlier_step_are_not_those_of_this_one(self):
        probe = Probe(self.model, self.out)
        self.loss().backward()
        for frozen in (True, False):
            self.model.inner.requires_grad_(not frozen)
            for p in self.model.parameters():
                p.grad.mul_(0.5)
            with probe.step():
                for p in self.model.parameters():
                    p.grad.zero_()
                self.model.head(self.model.inner(self.x).detach()).square().mean().backward()
                self.model.inner.requires_grad_(True)
        for step in range(2):
            self.assertEqual([entry for entry in self.dump(step)["data"] if "parameters_grad" in entry],
                             ["Module.head.Linear.parameters_grad.0"])

    def test_no_bit_is_changed(self):
        def trained(probe):
            torch.manual_seed(1)
            self.model = Net()
            optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
            watch = Probe(self.model, self.out, optimizer=optimizer, level="mix") if probe else None
            for _ in range(3):
                optimizer.zero_grad()
                if watch:
                    with watch.step():
                        watch.loss(self.loss()).backward()
                        optimizer.step()
                else:
                    self.loss().backward()
                    optimizer.step()
            return self.weights()
        for a, b in zip(trained(False), trained(True)):
            self.assertTrue(torch.equal(a, b))

    def test_modules_that_are_called_twice_and_results_of_any_kind(self):
        probe = Probe(self.model, self.out)
        with probe.step():
            self.loss().backward()
        data = self.dump()["data"]
        self.assertIn("Module.inner.Linear.forward.1", data)
        self.assertIn("Module.inner.Linear.backward.1", data)
        taken = data["Module.odd.Odd.forward.0"]["input_args"][0]
        self.assertEqual(taken[1][0]["shape"], [4, 6])  # within a tuple within a tuple
        given = data["Module.odd.Odd.forward.0"]["output"][0]
        self.assertEqual([given["none"], given["sum"]["shape"]], [None, [4, 6]])
        back = data["Module.odd.Odd.backward.0"]
        self.assertEqual(back["output"][0][1][0]["shape"], [4, 6])  # the gradient of what lies there
        self.assertEqual(back["input"][0]["shape"], [4, 6])

    def test_a_dataclass_is_a_dictionary(self):
        outer = nn.Sequential(self.model)
        with Probe(outer, self.out).step():
            (outer(self.x).logits ** 2).mean().backward()
        data = self.dump()["data"]
        given = data["Module.0.Net.forward.0"]["output"][0]
        self.assertEqual([given["logits"]["shape"], given["extra"]], [[4, 2], None])
        self.assertEqual(data["Module.0.Net.backward.0"]["input"][0]["shape"], [4, 2])

    def test_passes_that_a_checkpoint_repeats_are_not_seen_twice(self):
        from torch.utils.checkpoint import checkpoint
        for reentrant in (False, True):
            inner = nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 6))
            x = self.x.clone().requires_grad_()
            with Probe(inner, self.out / str(reentrant)).step():
                checkpoint(inner, x, use_reentrant=reentrant).sum().backward()
            data = json.loads((self.out / str(reentrant) / "step0/rank/dump.json").read_text())["data"]
            self.assertEqual([name for name in data if name.startswith("Module.0") and "forward" in name],
                             ["Module.0.Linear.forward.0"])
            self.assertIn("Module.0.Linear.parameters_grad.0", data)

    def test_an_exception_within_a_step_leaves_the_next_one_whole(self):
        probe = Probe(self.model, self.out, optimizer=self.optimizer)
        with self.assertRaises(ZeroDivisionError), probe.step():
            self.loss().backward()
            1 / 0
        self.assertFalse((self.out / "step0/rank/dump.json").exists())
        with probe.step():
            with self.assertRaises(RuntimeError):
                self.model(torch.ones(3, 5))  # a module that fails, and a program that goes on
            self.loss().backward()
            self.optimizer.step()
        data = self.dump()["data"]
        self.assertIn("Module.head.Linear.backward.0", data)
        self.assertIn("Module.head.Linear.parameters_update.0", data)

    def test_what_cannot_be_seen_into_is_refused(self):
        self.model.head.compile(backend="eager")
        with self.assertRaisesRegex(TypeError, "'head' was compiled by torch.compile"):
            Probe(self.model, self.out)
        with self.assertRaisesRegex(TypeError, "the model was compiled by torch.compile"):
            Probe(torch.compile(nn.Linear(2, 2), backend="eager"), self.out)
        with self.assertRaisesRegex(TypeError, "DataParallel"):
            Probe(nn.DataParallel(nn.Linear(2, 2)), self.out)
        with self.assertRaisesRegex(TypeError, "no torch.optim.Optimizer"):
            Probe(nn.Linear(2, 2), self.out, optimizer=object())
        with self.assertRaisesRegex(ValueError, "without its optimizer"):
            Probe(nn.Linear(2, 2), self.out, scaler=torch.amp.GradScaler("cpu"))

    def test_statistics_in_pieces_are_those_of_the_whole(self):
        inf, nan = float("inf"), float("nan")
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            info = torch.finfo(dtype)
            rows = [torch.randn(3, statistics.PIECE // 2), torch.randn(30, 40).T, torch.tensor([1, inf, -2]),
                    torch.tensor([nan, inf, 2]), torch.tensor([0., -0., info.max, info.smallest_normal / 2]),
                    torch.tensor(3.), torch.randn(4, 6)[:, ::2], torch.full((9,), -inf), torch.ones(1).expand(5, 7)]
            for t in (row.to(dtype) for row in rows):
                self.assertTrue(torch.allclose(statistics.of_floats(t), statistics.on_processor(t), rtol=1e-12,
                                               atol=1e-9, equal_nan=True), t)

    def test_statistics_of_a_tensor_that_was_changed_are_taken_anew(self):
        recent, t = statistics.Recent(), torch.ones(3)
        first = recent.taken(t)
        self.assertIs(recent.taken(t.view(3)), first)
        t.mul_(2)
        self.assertEqual(recent.taken(t)[0].item(), 2)

    def test_what_changes_a_tensor_without_a_word_is_seen(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            recent, t = statistics.Recent(), torch.ones(3, dtype=dtype)
            self.assertEqual(recent.taken(t)[0].item(), 1)
            t.data.mul_(3)
            self.assertEqual(recent.taken(t)[0].item(), 3)
        recent, t = statistics.Recent(), torch.ones(8)
        recent.taken(t)
        t.numpy()[:] *= 5
        self.assertEqual(recent.taken(t)[0].item(), 5)


class Packaging(unittest.TestCase):
    def test_the_package_installs_into_a_fresh_environment(self):
        import shutil
        import venv
        with tempfile.TemporaryDirectory() as folder:
            copied = Path(folder) / "aloft_probe"
            shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
            try:
                venv.create(Path(folder) / "venv", with_pip=True)
            except (ImportError, subprocess.CalledProcessError) as e:
                self.skipTest(f"no environment can be made here: {e}")
            python = Path(folder) / "venv" / "bin" / "python"
            done = subprocess.run([python, "-m", "pip", "install", "--no-index", copied], capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            said = subprocess.run([python, "-m", "pip", "show", "-f", "aloft-probe"], capture_output=True, text=True)
            for file in sorted((PACKAGE / "aloft_probe").glob("*.py")):
                self.assertIn(f"aloft_probe/{file.name}", said.stdout)
            if torch:
                code = "import aloft_probe; print(aloft_probe.Probe.__name__, aloft_probe.__file__)"
                where = str(Path(torch.__file__).resolve().parents[1])
                said = subprocess.run([python, "-c", f"import sys; sys.path.append({where!r}); {code}"],
                                      capture_output=True, text=True)
                self.assertIn("Probe " + str(Path(folder).resolve()), said.stdout, said.stderr)


if __name__ == "__main__":
    unittest.main()
