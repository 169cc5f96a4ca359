"""The collector in the Trainer of transformers, and in what accelerate makes of an optimizer."""
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


if __name__ == "__main__":
    unittest.main()
