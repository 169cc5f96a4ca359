"""What was chosen by measurement for a run stays chosen: where it goes on, on another machine too, and in a
run that is to choose as it did."""
import json
import shutil

from program import ProgramTest, main

AUTO = ("--set", "precision.level=auto")


class Choices(ProgramTest):
    def train(self, out, *rest, exit_code=0, **environment):
        before = dict(self.environment)
        self.environment.update(environment)
        try:
            return self.aloft("train", "tiny.toml", "--out", out, *AUTO, *rest,
                              exit_code=exit_code).stderr.decode()
        finally:
            self.environment.clear()
            self.environment.update(before)

    def record(self, out):
        return json.loads((self.folder / out / "run.json").read_text())

    def weights(self, out, step):
        return (self.folder / out / "checkpoints" / step / "model.safetensors").read_bytes()

    def flip_rates(self):
        """The kept measurement says the opposite of what it said."""
        file = self.folder / "cache" / "aloft" / "product-rates.json"
        kept = json.loads(file.read_text())
        for rates in kept.values():
            low_pays = rates["bf16_gflops"] >= 1.05 * rates["f32_gflops"]
            rates.update(f32_gflops=100, bf16_gflops=50 if low_pays else 300, spread=0)
            rates.pop("unsettled_at", None)
        file.write_text(json.dumps(kept))
        return file

    def test_what_was_measured_of_layers_is_explained(self):
        # A device whose rates are known: on another machine no layer may be measured.
        asked = ("--device", "sim:H100", "--precision", "adaptive:bf16 error_budget=0.0037")
        made = self.aloft("explain", "precision", "tiny.toml", *asked)
        shown = made.stdout.decode()
        self.assertIn("adaptive precision: measures ", made.stderr.decode())
        self.assertLess(shown.index("measured errors"), shown.index("accumulate"))
        self.assertRegex(shown, r"measured: 0\.[0-9]+ % in bf16,")  # the rest is on the cell's next lines
        self.assertNotIn("keeps this layer", shown)
        # What the recipe lists itself is the recipe's.
        shown = self.aloft("explain", "precision", "tiny.toml", *asked, "--set",
                           'precision.fp32_layers=["*"]').stdout.decode()
        self.assertNotIn("above the budget", shown)

    def test_a_model_by_name_is_measured_on_little(self):
        said = self.aloft("explain", "precision", "mlp", "--device", "sim:H100", "--precision",
                          "adaptive").stderr.decode()
        self.assertIn("batches: 1 of 2 at most", said)

    def test_they_are_made_once(self):
        self.train("straight", "--steps", 8)
        self.train("stopped", "--steps", 4)
        chosen = self.record("stopped")["choices"]
        self.assertIn(chosen["precision"]["value"], self.record("stopped")["policy"])
        manifest = self.folder / "stopped" / "checkpoints" / "step-000004" / "manifest.json"
        self.assertEqual(json.loads(manifest.read_text())["choices"], chosen)
        shutil.copytree(self.folder / "stopped", self.folder / "moved")

        kept = self.flip_rates()
        text = kept.read_text()
        self.train("stopped", "--resume", "--steps", 8)
        self.assertEqual(self.record("stopped")["choices"], chosen)
        self.assertEqual(self.weights("stopped", "step-000008"),
                         self.weights("straight", "step-000008"))

        # Another kind of machine, whose rates nobody has measured: they are not, either.
        said = self.train("moved", "--resume", "--steps", 8, ALOFT_MAX_ISA="avx2")
        self.assertIn("resuming after step 4", said)
        self.assertEqual(self.record("moved")["choices"], chosen)
        self.assertEqual(self.record("moved")["policy"], self.record("straight")["policy"])
        self.assertEqual(self.record("moved")["result"]["steps"], 8)
        self.assertEqual(kept.read_text(), text)

        self.train("anew", "--steps", 8)
        self.assertNotEqual(self.record("anew")["policy"], self.record("straight")["policy"])
        self.train("again", "--steps", 8, "--choices", "straight")
        self.assertEqual(self.record("again")["signature"], self.record("straight")["signature"])
        self.assertEqual(self.weights("again", "step-000008"),
                         self.weights("straight", "step-000008"))

    def test_a_run_that_chose_nothing_is_refused(self):
        self.aloft("train", "tiny.toml", "--out", "named", "--steps", 1)
        self.assertEqual(self.record("named")["choices"], {})
        self.assertIn("E0829", self.train("other", "--choices", "named", exit_code=2))
        self.assertFalse((self.folder / "other").exists())
        self.assertIn("E0829", self.train("other", "--choices", "", exit_code=2))
        # The recipe names its precision: the other's choice would be recorded and not taken.
        self.train("chosen", "--steps", 1)
        said = self.aloft("train", "tiny.toml", "--out", "other", "--choices", "chosen", exit_code=2)
        self.assertIn("leaves nothing to choose", said.stderr.decode())
        self.assertFalse((self.folder / "other").exists())
        self.assertIn("excludes", self.train("named", "--resume", "--choices", "named",
                                             exit_code=2))

    def test_the_plan_says_them(self):
        said = self.aloft("explain", "plan", "tiny.toml", *AUTO).stdout.decode()
        self.assertIn("chose precision = O", said)


if __name__ == "__main__":
    main()
