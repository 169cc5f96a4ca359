"""Runs that learn from arrays: classification, several labels and regression, tables and IDX files, from a recipe."""
import json
import unittest

from arrays import CLASSES, MLP, MLP_NUMBERS, MULTI, NUMBERS, write_idx, write_tables
from program import ProgramTest, main, report_data

IDX = CLASSES.replace('csv = "classes.csv"\nshape = [1, 4, 4]',
                      'images = "images.idx"\nlabels = "labels.idx"\nscale = 0.00392157')


class Tasks(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        write_tables(cls.folder)
        write_idx(cls.folder)
        for name, recipe in (("classes", CLASSES), ("numbers", NUMBERS), ("multi", MULTI), ("idx", IDX), ("mlp", MLP),
                             ("mlp-numbers", MLP_NUMBERS)):
            (cls.folder / f"{name}.toml").write_text(recipe)

    def evaluations(self, run):
        lines = map(json.loads, (self.folder / run / "metrics.jsonl").read_text().splitlines())
        return [line for line in lines if "val_loss" in line]

    def model(self, run):
        newest = max((self.folder / run / "checkpoints").iterdir())
        return (newest / "model.safetensors").read_bytes()

    def refused(self, *arguments, says):
        said = self.aloft("train", *arguments, exit_code=2).stderr.decode()
        for words in says:
            self.assertIn(words, said)

    def test_images_are_learnt(self):
        """Of a table and of IDX files: the same numbers but for the table's rounding."""
        for name in ("classes", "idx"):
            self.aloft("train", f"{name}.toml", "--out", name, "--steps", 120)
            last = self.evaluations(name)[-1]
            self.assertGreater(last["val_accuracy"], 0.9, name)
            record = json.loads((self.folder / name / "run.json").read_text())
            self.assertEqual((record["task"], record["unit"], record["examples"]),
                             ("classification", "examples", {"train": 72, "validation": 24}))
            self.assertEqual(record["model"]["classes"], 3)
            self.assertIn("accuracy", (self.folder / name / "report.html").read_text())
        self.assertEqual(round(self.evaluations("classes")[0]["val_loss"], 2),
                         round(self.evaluations("idx")[0]["val_loss"], 2))

    def test_numbers_are_learnt(self):
        said = self.aloft("train", "numbers.toml", "--out", "numbers", "--steps", 200).stdout.decode()
        self.assertIn("root mean square", said)
        last = self.evaluations("numbers")[-1]
        self.assertAlmostEqual(last["val_rmse"] ** 2, last["val_loss"], places=9)
        self.assertLess(last["val_rmse"], 0.2)

    def test_several_labels_are_learnt(self):
        said = self.aloft("train", "multi.toml", "--out", "multi", "--steps", 150).stdout.decode()
        self.assertIn("% of labels", said)
        first, *_, last = self.evaluations("multi")
        self.assertGreater(last["val_accuracy"], 0.9)
        self.assertLess(last["val_loss"], first["val_loss"])
        self.refused("multi.toml", "--set", "model.classes=3", says=["E0716", "exactly 2"])
        self.refused("multi.toml", "--set", "data.csv=numbers-far.csv", says=["E0727", "a target of -3", "0 to 1"])

    def test_dense_layers_learn_both(self):
        """Classes of a line or of an image, and numbers: the sizes are the data's."""
        for options in ([], ["--set", "data.shape=[]"]):
            out = f"mlp-{len(options)}"
            self.aloft("train", "mlp.toml", "--out", out, "--steps", 120, *options)
            self.assertGreater(self.evaluations(out)[-1]["val_accuracy"], 0.9)
            model = json.loads((self.folder / out / "run.json").read_text())["model"]
            self.assertEqual(model, {"family": "mlp", "hidden": [24, 12], "activation": "relu", "dropout": 0.0,
                                     "features": 16, "classes": 3})
        self.assertEqual(self.model("mlp-0"), self.model("mlp-2"))
        self.aloft("train", "mlp-numbers.toml", "--out", "mlp-numbers", "--steps", 200)
        self.assertLess(self.evaluations("mlp-numbers")[-1]["val_rmse"], 0.2)
        self.aloft("train", "mlp.toml", "--set", "model.hidden=[]", "--out", "one-layer", "--steps", 2)
        timed = self.parsed("bench", "step", "mlp", "--hidden", "[32,8]", "--features", 9, "--json", "--no-limit",
                            "--steps", 1)[0]
        self.assertEqual(timed["settings"], {"hidden": [32, 8], "activation": "relu", "features": 9, "classes": 10,
                                             "dropout": 0.0})
        self.refused("mlp.toml", "--set", "model.activation=tanhh", says=["model.activation", "relu"])
        self.refused("mlp.toml", "--set", "model.hidden=[8,0]", says=["model.hidden"])
        self.refused("mlp.toml", "--set", "model.features=17", says=["E0716", "exactly 16"])
        self.refused("mlp-numbers.toml", "--set", "model.classes=3", says=["E0716", "exactly 2"])
        self.refused("tiny.toml", "--set", "model.family=mlp", says=["E0727", "need  features, labels"])

    def test_dense_layers_leave_out(self):
        """The same in both modes and behind a resume, with another share, too; nothing in evaluation."""
        drop = ["--set", "model.dropout=0.4"]
        for mode in ("graph", "eager"):
            self.aloft("train", "mlp.toml", "--out", f"drop-{mode}", "--mode", mode, "--steps", 4, *drop)
            self.aloft("train", "mlp.toml", "--out", f"drop-{mode}", "--steps", 7, "--resume", "--mode", mode, *drop)
        self.aloft("train", "mlp.toml", "--out", "drop-once", "--steps", 7, *drop)
        self.aloft("train", "mlp.toml", "--out", "drop-none", "--steps", 7)
        self.assertEqual(self.model("drop-graph"), self.model("drop-eager"))
        self.assertEqual(self.model("drop-graph"), self.model("drop-once"))
        self.assertNotEqual(self.model("drop-none"), self.model("drop-once"))
        said = self.aloft("train", "mlp.toml", "--out", "drop-once", "--steps", 9, "--resume", "--set",
                          "model.dropout=0.1")
        self.assertIn("model.dropout", (said.stdout + said.stderr).decode())
        self.refused("mlp.toml", "--set", "model.dropout=1", says=["model.dropout"])

    def test_going_on_is_never_having_stopped(self):
        for name in ("classes", "mlp", "multi", "mlp-numbers"):
            for mode in ("graph", "eager"):
                at_once, later = f"once-{name}-{mode}", f"later-{name}-{mode}"
                self.aloft("train", f"{name}.toml", "--out", at_once, "--mode", mode, "--steps", 7)
                self.aloft("train", f"{name}.toml", "--out", later, "--mode", mode, "--steps", 3)
                self.aloft("train", f"{name}.toml", "--out", later, "--mode", mode, "--steps", 7, "--resume")
                self.assertEqual(self.model(at_once), self.model(later), mode)
                self.assertEqual(self.evaluations(at_once)[-1], self.evaluations(later)[-1])
            self.assertEqual(self.model(f"once-{name}-graph"), self.model(f"once-{name}-eager"))

    def test_other_data_is_noticed(self):
        self.aloft("train", "classes.toml", "--out", "changed", "--steps", 2)
        table = self.folder / "classes.csv"
        before = table.read_text()
        try:
            table.write_text(before.replace(",0\n", ",1\n", 1))
            said = self.aloft("train", "classes.toml", "--out", "changed", "--steps", 4, "--resume",
                              exit_code=2).stderr.decode()
            self.assertIn("E0818", said)
            self.assertRegex(said, "(training|validation) examples: ")
        finally:
            table.write_text(before)

    def test_what_does_not_fit_is_refused(self):
        self.refused("classes.toml", "--set", "task.kind=regression", says=["E0727", "labels", "targets"])
        self.refused("classes.toml", "--set", "task.kind=language-model",
                     says=["a lenet does not learn language-model", "classification or multi-label or regression"])
        self.refused("classes.toml", "--set", "model.family=gpt2", says=["E0727", "features, labels", "tokens, targets"])
        self.refused("classes.toml", "--set", "data.shape=[1,4,5]", says=["E0727", "16 features"])
        self.refused("classes.toml", "--set", "data.shape=[]", says=["E0726", "data.shape"])
        self.refused("classes.toml", "--set", "model.classes=2", says=["E0716", "at least 3"])
        self.refused("classes.toml", "--set", "model.layers=2", says=["model.layers: lenet has no such key"])
        self.refused("classes.toml", "--set", "data.text=text.txt", says=["is not read where data.csv"])
        self.refused("tiny.toml", "--set", "data.scale=2", says=["needs data.csv or data.images"])
        self.refused("idx.toml", "--set", "data.outputs=1", says=["is of tables"])
        (self.folder / "odd.csv").write_text("1,2,3\n1,2\n")
        said = self.aloft("train", "classes.toml", "--set", "data.csv=odd.csv", exit_code=3).stderr.decode()
        self.assertIn("odd.csv:2", said)

    def test_a_rate_is_of_examples(self):
        """Nowhere of tokens: not while it trains, in no record, and not in the report."""
        shown = self.on_terminal("train", "classes.toml", "--out", "rated", "--steps", 4, columns=200, stream="stderr")
        said = self.aloft("train", "classes.toml", "--out", "rated-too", "--steps", 4).stdout
        for text in (shown, said):
            self.assertIn(b" examples/s", text)
            self.assertNotIn(b"tok/s", text)
        metrics = [json.loads(x) for x in (self.folder / "rated" / "metrics.jsonl").read_text().splitlines()]
        steps = [x for x in metrics if "loss" in x]
        self.assertEqual(len(steps), 4)
        record = json.loads((self.folder / "rated" / "run.json").read_text())
        for one in (*steps, record["result"]):
            self.assertGreater(one["examples_per_s"], 0)
            self.assertNotIn("tokens_per_s", one)
        self.assertEqual([x["examples"] for x in steps], [8, 16, 24, 32])
        events, = (self.folder / "rated").glob("events.out.tfevents.*")
        self.assertIn(b"train/examples_per_s", events.read_bytes())
        self.assertNotIn(b"tokens_per_s", events.read_bytes())
        self.assertTrue(report_data(self.folder / "rated")["curves"]["rate"])
        self.assertIn("examples_per_s",
                      self.parsed("bench", "step", "--model", "classes.toml", "--json", "--no-limit", "--steps", 1)[0])

    def test_a_step_of_images_is_timed(self):
        timed = self.parsed("bench", "step", "--model", "classes.toml", "--json", "--no-limit", "--steps", 2)[0]
        self.assertEqual((timed["unit"], timed["batch"]), ("examples", 8))
        other = self.parsed("bench", "step", "--model", "lenet", "--batch", 4, "--json", "--no-limit",
                            "--steps", 2, "--set", "optimizer.kind=sgd", "--set", "model.filters=3")[0]
        self.assertLess(other["planned_peak_bytes"], 2 << 20)


if __name__ == "__main__":
    main()
