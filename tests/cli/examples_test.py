"""What `--help` shows as an example is there: recipes, models by name, options, verbs."""
import json
import re
import unittest

from program import ROOT, ProgramTest, main


class Examples(ProgramTest):
    def verbs(self, *path):
        """[(words, help)] of a verb and of those behind it."""
        shown = self.aloft(*path, "--help").stdout.decode()
        found = [(path, shown)] if path else []
        if path != ("bench",):  # whose help has that of `step` in it
            listed = re.search(r"(?ms)^(?:SUBCOMMANDS|Subcommands):\n(.*)", shown)
            for name in re.findall(r"(?m)^  ([a-z]+)  ", listed.group(1) if listed else ""):
                found += self.verbs(*path, name)
        return found

    def test_every_verb_has_examples_of_what_is_there(self):
        keys = json.loads(self.aloft("recipes", ROOT / "recipes", "--json").stdout)["keys"]
        models = {name for key in keys if key["key"] in ("model.family", "model.size") for name in key["choices"]}
        self.assertIn("gpt2", models)
        verbs = self.verbs()
        self.assertGreater(len(verbs), 14)
        for path, shown in verbs:
            example = re.search(r"(?s)Example:\s+(aloft .*?)(?:\n\n|\Z)", shown)
            self.assertTrue(example, f"{path}: no example")
            words = example.group(1).split()
            self.assertEqual(words[1], path[0])
            for word in words:
                if word.startswith("recipes/"):
                    self.assertTrue((ROOT / word).is_file(), f"{path}: {word}")
                if word.startswith("--"):
                    self.assertRegex(shown.replace(example.group(0), ""), rf"{word}[ ,\n]", f"{path}: {word}")
            for option, value in zip(words, words[1:]):
                if option == "--model":
                    self.assertIn(value, models, path)

    def test_what_is_timed_has_an_example_of_its_own(self):
        for what in ("step", "generate"):
            shown = self.aloft("bench", what, "--help").stdout.decode()
            self.assertRegex(shown, rf"Example:\n  aloft bench {what} ")

    def test_defaults_are_of_the_catalogues(self):
        keys = {k["key"]: k for k in json.loads(self.aloft("recipes", "--json").stdout)["keys"]}
        for key in ("model.family", "data.tokenizer.kind"):
            self.assertIn(keys[key]["default"], keys[key]["choices"], key)
        shown = self.aloft("bench", "step", "--help").stdout.decode()
        usual = next(size for size in keys["model.size"]["choices"] if size.startswith(keys["model.family"]["default"]))
        self.assertRegex(shown, rf"--model TEXT \[{usual}\]|MODEL.*{usual}")


if __name__ == "__main__":
    main()
