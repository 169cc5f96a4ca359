"""Every option of train, bench and explain beside the recipe's key: the command line decides, and what
means nothing is refused. The options are those of the programs' own --help: a new one without a row
here fails. Usage: options_test.py ALOFT REPOSITORY (the standard library only)."""

import json
import re
import unittest

import program

COMMANDS = (("train",), ("bench", "step"), ("explain", "precision"), ("explain", "plan"),
            ("explain", "graph"), ("explain", "kernels"))

# Options that say what a key of the recipe says: key, what the file says, what the option says.
KEYS = {
    "train": {
        "--steps": ("train.steps", "4", "3"),
        "--mode": ("train.mode", '"graph"', "eager"),
        "--threads": ("train.threads", "2", "1"),
        "--device": ("train.device", '"sim"', "cpu"),
        "--probe": ("probe.task", '"statistics"', "none"),
        "--profile": ("profile.steps", "1", "2"),
    },
    "bench step": {
        "--batch": ("train.batch", "2", "3"),
        "--seq": ("model.context", "8", "16"),
        "--precision": ("precision.level", '"O2:bf16"', "O0"),
        "--layers": ("model.layers", "1", "2"),
        "--heads": ("model.heads", "2", "4"),
        "--dim": ("model.dim", "16", "32"),
        "--hidden": ("model.hidden", "32", "48"),
        "--vocab": ("model.vocab", "260", "300"),
        "--threads": ("train.threads", "2", "1"),
    },
    **{f"explain {subject}": {"--precision": ("precision.level", '"O2:bf16"', "O0")}
       for subject in ("precision", "plan", "graph", "kernels")},
}

# Options that no key of a recipe stands for, and why.
OTHERS = {
    "train": {"--set": "names its key", "--out": "a place", "--init": "a place", "--resume": "of a run",
              "--force": "with --resume", "--print-config": "shows the recipe",
              "--quiet": "what is said", "--choices": "a run whose measurements are taken"},
    "bench step": {"--device": "a place", "--model": "what is timed", "--steps": "timed steps, not train.steps",
                   "--set": "names its key", "--init": "a place", "--json": "form", "--no-limit": "what is measured",
                   "--probe": "what the cost is measured of", "--probe-every": "with --probe",
                   **{f"--{key}": "of other families" for key in (
                       "kv_heads", "head_width", "score_width", "window", "window_from", "window_every",
                       "plain_every", "rotary_original", "filters", "channels", "height", "width", "features",
                       "classes", "token_types", "positions", "padding")}},
    **{f"explain {subject}": {"--device": "a place", "--set": "names its key", "--init": "a place", "--json": "form",
                              **{option: "which" for option in more}}
       for subject, more in {"precision": ["--program"], "plan": ["--summary"], "graph": ["--program"],
                             "kernels": ["--program", "--each"]}.items()},
}

# Options of what looks into steps and what they are given, and what for.
PROBES = {
    "probe run": {"--set": "names its key", "--init": "a place", "--tokens": "of a saved model", "--precision": "with it",
                  "--batch": "of a file of batches",
                  "--task": "probe.task", "--config": "what msprobe would be asked", "--level": "probe.level",
                  "--out": "a place", "--steps": "made, not train.steps", "--at": "probe.at", "--threads": "train.threads",
                  "--device": "a place", "--json": "form", "--quiet": "what is said"},
    "probe redo": {"--step": "which", "--times": "how often", "--same-memory": "where", "--threads": "train.threads",
                   "--device": "a place", "--json": "form", "--quiet": "what is said"},
    "probe compare": {"--out": "a place", "--map": "of names", "--xlsx": "form", "--strict": "what is an error",
                      "--json": "form"},
    "probe acc-check": {"--out": "a place", "--list": "of calls", "--json": "form"},
    "data batches": {"--set": "names its key", "--init": "a place", "--steps": "of train.steps", "--out": "a place",
                     "--json": "form"},
}

# Models by name: the options that mean something for them, and how the result shows it.
SHOWN = {"--batch": "batch", "--seq": "context", "--layers": "layers", "--heads": "heads", "--dim": "dim",
         "--hidden": "hidden", "--vocab": "vocab", "--threads": "threads", "--precision": "precision"}
NAMED = {"lenet": {"--batch", "--threads", "--precision", "--hidden"},
         "resnet18": {"--batch", "--threads", "--precision"},
         "llama": set(SHOWN)}


def recipe_with(**changes):
    """The tiny recipe with keys "section.key" set as in a file."""
    sections = {}
    for line in program.TINY.splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), {})
        elif " = " in line:
            section.__setitem__(*line.split(" = ", 1))
    for key, value in changes.items():
        section, name = key.split(".", 1)
        sections.setdefault(section, {})[name] = value
    return "\n".join(f"[{name}]\n" + "\n".join(f"{k} = {v}" for k, v in keys.items())
                     for name, keys in sections.items()) + "\n"


class Options(program.ProgramTest):
    def flags(self, command):
        shown = self.aloft(*command, "--help").stdout.decode()
        return set(re.findall(r"^\s+(?:-\w,)?(--[\w-]+)", shown, re.M)) - {"--help"}

    def write(self, name, **changes):
        (self.folder / name).write_text(recipe_with(**changes))
        return name

    def timed(self, model, *options):
        return self.parsed("bench", "step", "--model", model, "--steps", 1, "--json", "--no-limit",
                           *options)[0]

    def shown(self, command, recipe, *options):
        """What the command makes of a recipe: equal for equal recipes."""
        if command == ("train",):
            lines = self.aloft("train", recipe, "--print-config", *options).stdout.decode()
            return [line.split("#")[0].strip() for line in lines.splitlines()]
        if command == ("bench", "step"):
            one = self.timed(recipe, *options)
            one |= one["settings"]
            return {key: one.get(key) for key in (*SHOWN.values(), "planned_peak_bytes")}
        return self.aloft(*command, recipe, *options).stdout

    def test_every_option_is_known(self):
        for command in COMMANDS:
            name = " ".join(command)
            self.assertEqual(self.flags(command), set(KEYS[name]) | set(OTHERS[name]), name)
            self.assertFalse(set(KEYS[name]) & set(OTHERS[name]), name)
        for name, options in PROBES.items():
            self.assertEqual(self.flags(name.split()), set(options), name)
            shown = self.aloft(*name.split(), "--help").stdout.decode()
            self.assertEqual([line for line in shown.splitlines() if len(line) > 100], [], name)

    def test_the_command_line_beats_the_file(self):
        for command in COMMANDS:
            for flag, (key, before, given) in KEYS[" ".join(command)].items():
                value = given if given.isdigit() else f'"{given}"'
                by_file = self.shown(command, self.write("given.toml", **{key: value}))
                recipe = self.write("before.toml", **{key: before})
                by_option = self.shown(command, recipe, flag, given)
                self.assertEqual(by_option, by_file, f"{command} {flag}")
                self.assertNotEqual(self.shown(command, recipe), by_file, f"{command} {flag}")
                # And by --set, which every one of these takes.
                self.assertEqual(self.shown(command, recipe, "--set", f"{key}={given}"), by_file,
                                 f"{command} --set {key}")

    def test_all_threads_are_all_threads(self):
        recipe = self.write("two.toml", **{"train.threads": "2"})
        self.assertEqual(self.timed(recipe)["threads"], 2)
        self.assertEqual(self.timed(recipe, "--threads", 0)["threads"], 1)  # OMP_NUM_THREADS

    def test_two_values_are_refused(self):
        recipe = self.write("plain.toml")
        for command in COMMANDS:
            name = " ".join(command)
            place = ["--model", recipe] if command[0] == "bench" else [recipe]
            for flag, (key, before, given) in KEYS[name].items():
                said = self.aloft(*command, *place, flag, given, "--set", f"{key}={before}",
                                  exit_code=2).stderr.decode()
                self.assertIn("E0710", said)
                self.assertIn(key, said)
                self.aloft(*command, *place, "--set", f"{key}={given}", "--set", f"{key}={before}",
                           exit_code=2)

    def test_what_a_model_by_name_does_not_have_is_refused(self):
        small = {"--batch": 2, "--seq": 8, "--layers": 1, "--heads": 4, "--dim": 16, "--vocab": 32,
                 "--hidden": 48, "--threads": 1, "--precision": "O2:bf16"}
        self.assertEqual(set(small), set(KEYS["bench step"]))
        for model, means in NAMED.items():
            for flag in set(small) - means:
                said = self.aloft("bench", "step", "--model", model, flag, small[flag],
                                  exit_code=2).stderr.decode()
                self.assertIn("E0724", said)
                self.assertIn(flag, said)
            if model == "resnet18":
                continue  # as lenet, and slow
            one = self.timed(model, *(word for flag in means for word in (flag, small[flag])))
            one |= one["settings"]
            for flag in means:
                self.assertEqual(one[SHOWN[flag]], small[flag], f"{model} {flag}")
        for key in ("data.text=text.txt", "train.epochs=2", "train.mode=eager"):
            self.aloft("bench", "step", "--model", "gpt2-124m", "--set", key, exit_code=2)
        for key in ("data.text=text.txt", "model.layers=1", "optimizer.momentum=0.5", "model.size=lenet"):
            self.aloft("explain", "plan", "lenet", "--set", key, exit_code=2)

    def test_what_only_a_run_reads_is_refused_without_one(self):
        recipe = self.write("watched.toml", **{"train.eval_every": "2", "train.keep_best": "3"})
        asked = ("--set", "train.eval_every=5", "--set", "train.keep_best=2")
        for command in COMMANDS[1:]:
            place = ["--model", recipe] if command[0] == "bench" else [recipe]
            said = self.aloft(*command, *place, *asked, exit_code=2).stderr.decode()
            self.assertIn("E0724: --set train.eval_every, train.keep_best mean nothing here", said)
            self.shown(command, recipe)  # the file's own are left in peace
        self.aloft("bench", "step", "--model", "gpt2-124m", *asked, exit_code=2)
        said = self.aloft("data", "build", recipe, "--set", "train.batch=3", "--set", "precision=O0",
                          exit_code=2).stderr.decode()
        self.assertIn("E0724: --set precision, train.batch mean nothing here", said)
        self.aloft("data", "build", recipe, "--set", "data.validation=0.1")

    def test_a_wrong_value_is_one_error_for_every_verb(self):
        places = {("train",): ["tiny.toml"], ("bench", "step"): ["tiny.toml"], ("generate",): ["run", "--prompt", "a"],
                  ("score",): ["run", "--tokens", "t", "--out", "o"], ("explain", "plan"): ["tiny.toml"],
                  ("passes",): [], ("doctor",): [], ("devices",): []}
        for option, value, code, verbs in (("--precision", "O9", "E0711", 4), ("--device", "nowhere", "E0332", 8),
                                           ("--threads", "100000", "E0700", 4), ("--mode", "fast", "E0700", 2)):
            said = {}
            for command, place in places.items():
                if option in self.flags(command):
                    lines = self.aloft(*command, *place, option, value, exit_code=2).stderr.decode().splitlines()
                    said[command] = [line for line in lines if "--help" not in line]
            self.assertEqual(len(said), verbs, option)
            self.assertIn(code, said[min(said)][0])
            self.assertEqual(len(set(map(tuple, said.values()))), 1, said)

    def test_what_nothing_is_drawn_by_is_said(self):
        run = self.trained(self.write("drawn.toml"))
        draw = ("generate", run, "--prompt", "the", "--tokens", 2, "--seed", 3, "--top-k", 4)
        self.assertNotIn("does nothing", self.aloft(*draw).stderr.decode())
        said = self.aloft(*draw, "--temperature", 0).stderr.decode()
        self.assertIn("--top-k, --seed do nothing at --temperature 0", said)

    # A recipe that counts in epochs.

    def test_epochs_are_the_steps_that_they_make(self):
        schedule = {"schedule.kind": '"cosine"', "schedule.warmup": "2"}
        self.write("epochs.toml", **schedule)
        (self.folder / "epochs.toml").write_text(
            (self.folder / "epochs.toml").read_text().replace("steps = 4\n", "epochs = 2\n"))
        made = json.loads((self.trained("epochs.toml") / "run.json").read_text())
        steps = made["recipe"]["train"]["steps"]
        self.assertGreater(steps, 20)
        for command in (("explain", "graph"), ("explain", "plan")):
            by_epochs = self.shown(command, "epochs.toml")
            self.assertEqual(by_epochs, self.shown(command, "epochs.toml", "--set",
                                                   f"train.steps={steps}"))
            self.assertNotEqual(by_epochs, self.shown(command, "epochs.toml", "--set",
                                                      f"train.steps={steps + 1}"))
        self.timed("epochs.toml")

    def test_epochs_of_data_that_is_not_there(self):
        self.write("nowhere.toml", **{"data.text": '["nowhere.txt"]'})
        for command in (("explain", "plan", "nowhere.toml"),
                        ("bench", "step", "--model", "nowhere.toml")):
            said = self.aloft(*command, "--set", "train.epochs=2", exit_code=2).stderr.decode()
            self.assertIn("E0725", said)
            self.assertIn("train.steps=N", said)
            self.assertIn("nowhere.txt", said)

    def test_a_resume_in_epochs_has_the_length_it_had(self):
        self.write("again.toml", **{"schedule.kind": '"cosine"'})
        (self.folder / "again.toml").write_text(
            (self.folder / "again.toml").read_text().replace("steps = 4\n", "epochs = 0.5\n"))
        run = self.trained("again.toml")
        again = self.aloft("train", "again.toml", "--out", run, "--resume").stderr.decode()
        self.assertNotIn("train.steps", again)
        self.assertNotIn("another length", again)
        longer = self.aloft("train", "again.toml", "--out", run, "--resume", "--set",
                            "train.epochs=1").stderr.decode()
        self.assertIn("another length", longer)
        warm = self.aloft("train", "again.toml", "--out", "warm", "--set",
                          "schedule.warmup=1000").stderr.decode()
        self.assertIn("schedule.warmup is 1000 updates and the run", warm)

    def trained(self, recipe):
        run = self.folder / recipe.replace(".toml", "-run")
        self.aloft("train", recipe, "--out", run, "--quiet")
        return run

    # Lines that fit.

    def test_lines_fit_the_terminal(self):
        recipe = self.write("wide.toml", **{"model.layers": "2"})
        for subject in ("precision", "plan", "kernels"):
            shown = self.aloft("explain", subject, recipe).stdout.decode()
            self.assertEqual([line for line in shown.splitlines() if len(line) > 100], [], subject)
            for columns in (80, 140):  # a table of seven columns gets no narrower
                shown = self.on_terminal("explain", subject, recipe, columns=columns).decode()
                self.assertLessEqual(max(map(len, shown.splitlines())), columns, subject)


if __name__ == "__main__":
    program.main()
