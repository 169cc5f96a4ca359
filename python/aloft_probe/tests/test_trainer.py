"""The collector in the Trainer of transformers, in what accelerate makes of an optimizer, and in Lightning's Trainer."""
import importlib.util
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
MISSING = [name for name in ("torch", "transformers", "accelerate") if importlib.util.find_spec(name) is None]


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Trainers(unittest.TestCase):
    STEPS, PARTS = 2, 2

    def setUp(self):
        import torch
        import transformers
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        torch.manual_seed(1)
        self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_layer=1, n_head=2, n_embd=16, n_positions=16, vocab_size=32, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
            bos_token_id=None, eos_token_id=None))
        self.rows = torch.randint(0, 32, (16, 8))

    def train(self, **options):
        import transformers

        from aloft_probe import probe_trainer
        arguments = transformers.TrainingArguments(
            str(self.folder / "out"), per_device_train_batch_size=2, gradient_accumulation_steps=self.PARTS,
            max_steps=self.STEPS, report_to="none", use_cpu=True, save_strategy="no", disable_tqdm=True,
            eval_strategy="steps", eval_steps=1, logging_strategy="no")
        data = [{"input_ids": row, "labels": row} for row in self.rows]
        trainer = transformers.Trainer(self.model, arguments, train_dataset=data, eval_dataset=data[:2])
        probe_trainer(trainer, self.folder / "probed", **options)
        trainer.train()

    def test_steps_of_a_trainer_are_written(self):
        self.train()
        steps = sorted((self.folder / "probed").iterdir())
        self.assertEqual([step.name for step in steps], [f"step{i}" for i in range(self.STEPS)])
        for step in steps:
            dump = json.loads((step / "rank/dump.json").read_text())
            said = dump["training"]
            self.assertEqual(said["losses"], self.PARTS)
            self.assertEqual(said["optimizer"]["kind"], "adamw")
            self.assertGreater(said["gradient_norm"], 0)
            self.assertIs(said["skipped"], False)
            # As the gradients are taken: of all tokens of the step.
            self.assertLess(abs(said["loss"] * self.PARTS - 3.46), 0.5)
            for part in ("forward.0", "forward.1", "parameters_grad.0", "parameters_update.0"):
                self.assertIn(f"Module.transformer.h.0.ln_1.LayerNorm.{part}", dump["data"])
        # Nothing stays on the model, and an evaluation is none of the steps.
        self.assertFalse(any(module._forward_hooks for module in self.model.modules()))

    def test_options_are_those_of_the_probe(self):
        self.train(at="1", level="L1")
        self.assertEqual([step.name for step in (self.folder / "probed").iterdir()], ["step1"])
        self.assertEqual(json.loads((self.folder / "probed/step1/rank/dump.json").read_text())["level"], "L1")

    def test_accelerate(self):
        import accelerate
        import torch

        from aloft_probe import Probe
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
        model, optimizer = accelerator.prepare(self.model, torch.optim.SGD(self.model.parameters(), lr=0.5))
        probe = Probe(accelerator.unwrap_model(model), self.folder / "probed", optimizer=optimizer)
        with probe.step():
            for rows in self.rows[:4].split(2):
                with accelerator.accumulate(model):
                    accelerator.backward(probe.loss(model(input_ids=rows, labels=rows).loss))
                    optimizer.step()
                    optimizer.zero_grad()
        said = json.loads((self.folder / "probed/step0/rank/dump.json").read_text())["training"]
        self.assertEqual((said["losses"], said["learning_rate"], said["skipped"]), (2, 0.5, False))
        self.assertGreater(said["gradient_norm"], 0)


def lightning():
    """The package that has Lightning's Trainer, whichever is installed."""
    names = [name for name in ("pytorch_lightning", "lightning") if importlib.util.find_spec(name)]
    if not names:
        return None
    module = importlib.import_module(names[0])
    return module if names[0] == "pytorch_lightning" else importlib.import_module("lightning.pytorch")


@unittest.skipIf(lightning() is None, "not installed: pytorch_lightning, lightning")
class Lightning(unittest.TestCase):
    RATE, PARTS = 0.5, 2

    def setUp(self):
        import torch
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        torch.manual_seed(1)
        self.rows = torch.randn(10, 4)
        rate = self.RATE

        class Module(lightning().LightningModule):
            def __init__(self):
                super().__init__()
                self.body = torch.nn.Linear(4, 3)

            def training_step(self, batch, index):
                if getattr(self, "ends_at", None) == index:
                    raise ValueError("no more")
                return self.body(batch).square().mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=rate)
        self.module = Module()

    def train(self, **options):
        import torch

        from aloft_probe import probe_lightning
        trainer = lightning().Trainer(
            max_epochs=1, accumulate_grad_batches=self.PARTS, accelerator="cpu", logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
            default_root_dir=self.folder)
        probe_lightning(trainer, self.folder / "probed", **options)
        trainer.fit(self.module, torch.utils.data.DataLoader(self.rows, 2))

    def dumps(self):
        return {path.parents[1].name: json.loads(path.read_text())
                for path in sorted((self.folder / "probed").rglob("dump.json"))}

    def test_steps_are_those_of_the_optimizer(self):
        """Five batches, two to a step, of which the last has one."""
        import torch
        by_hand = torch.nn.Linear(4, 3)
        by_hand.load_state_dict(self.module.body.state_dict())
        self.train()
        dumps = self.dumps()
        self.assertEqual(list(dumps), ["step0", "step1", "step2"])
        self.assertEqual([dump["training"].get("losses", 1) for dump in dumps.values()], [2, 2, 1])
        for dump, rows in zip(dumps.values(), self.rows.split(4)):
            loss = sum(by_hand(part).square().mean() / self.PARTS for part in rows.split(2))
            gradients = torch.autograd.grad(loss, list(by_hand.parameters()))
            norm = torch.cat([g.flatten() for g in gradients]).norm().item()
            self.assertAlmostEqual(dump["training"]["gradient_norm"], norm, 5)
            update = dump["data"]["Module.body.Linear.parameters_update.0"]["weight"][0]
            self.assertAlmostEqual(update["Norm"], self.RATE * gradients[0].norm().item(), 5)
            with torch.no_grad():
                for parameter, gradient in zip(by_hand.parameters(), gradients):
                    parameter -= self.RATE * gradient
        self.assertFalse(any(module._forward_hooks for module in self.module.modules()))

    def test_a_step_that_ends_in_an_exception_leaves_no_dump(self):
        self.module.ends_at = 3
        with self.assertRaisesRegex(ValueError, "no more"):
            self.train(level="mix")
        self.assertEqual(list(self.dumps()), ["step0"])

    def test_another_trainer_is_refused(self):
        from aloft_probe import probe_lightning
        with self.assertRaisesRegex(TypeError, "no Trainer of PyTorch Lightning"):
            probe_lightning(self, "probed")


if __name__ == "__main__":
    unittest.main()
