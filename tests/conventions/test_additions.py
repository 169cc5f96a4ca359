"""What CONTRIBUTING.md counts: a family of models, a task, a source of examples, a kind of tokenizers is one pair of
files and one line of a catalogue, and a key of a model stands in one place. Nobody else knows a tenant by name."""

import re
import unittest

import project

SRC = project.ROOT / "src"

# What trains, generates, scores and parses options.
ABOVE = ("checkpoint", "cli", "infer", "recipe", "run", "sources", "tasks", "train")

# Folders that have a catalog.inc of tenants, each a pair of files there.
CATALOGUES = ("models", "tasks", "sources", "optim", "data/tokenizers")


def lines_of(catalogue):
    """The names that a catalogue lists, in its order."""
    return re.findall(r"(?m)^[A-Z_]+\((\w+)[,)]", project.text(SRC / catalogue))


def named_in(pattern):
    """Files of src whose code, not their comments, has the pattern."""
    return {project.name(path) for path in project.files("src") if re.search(pattern, project.code(path))}


def pair(stem):
    return {f"src/{stem}.h", f"src/{stem}.cpp"}


def camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


class Additions(unittest.TestCase):
    def test_a_tenant_is_a_pair_of_files_and_a_line(self):
        """Where the newest of each catalogue are named: in their pair, and in the catalogue."""
        tenants = {
            "models/catalog.inc": {"mistral": "models/mistral", "qwen2": "models/qwen2"},
            "tasks/catalog.inc": {"multi_label": "tasks/multi_label", "regression": "tasks/regression"},
            "sources/catalog.inc": {"arrays": "sources/arrays"},
            "optim/catalog.inc": {name: f"optim/{name}" for name in (
                "adadelta", "adafactor", "adagrad", "adamax", "adamp", "bert_adam", "lamb", "lars", "lion", "muon",
                "nadam", "novograd", "radam", "rprop")},
            "data/tokenizers/catalog.inc": {"byte_tokenizer": "data/tokenizers/byte_tokenizer",
                                            "char_tokenizer": "data/tokenizers/char_tokenizer"},
        }
        for catalogue, stems in tenants.items():
            for name, stem in stems.items():
                self.assertIn(name, lines_of(catalogue))
                pattern = rf'\b{name}(?:_\w+)?\b|\b{camel(name)}\b|"{name.replace("_tokenizer", "")}"|"{stem}\.h"'
                found, wanted = named_in(pattern), {f"src/{catalogue}", f"src/{stem}.cpp"}
                self.assertLessEqual(found, pair(stem) | wanted, name)
                self.assertLessEqual(wanted, found, name)

    def test_every_tenant_has_its_pair(self):
        for folder in CATALOGUES:
            catalogue = f"{folder}/catalog.inc"
            for name in lines_of(catalogue):
                for path in pair(f"{folder}/{name}"):
                    self.assertTrue((project.ROOT / path).is_file(), path)
            # The build follows the catalogue: no list of its own has them.
            cmake = SRC / folder.split("/")[0] / "CMakeLists.txt"
            for name in lines_of(catalogue):
                self.assertNotRegex(project.text(cmake), rf"\b{name}\.cpp", project.name(cmake))

    def test_nobody_compares_a_name(self):
        """Nothing in src asks whether a name is that of a tenant of some catalogue, but its own pair. Sources are left
        out, whose names are words: tokens."""
        for folder in CATALOGUES:
            for stem in lines_of(f"{folder}/catalog.inc") if folder != "sources" else ():
                name = stem.replace("_tokenizer", "").replace("_", "[-_]")
                found = named_in(rf'[=!]=\s*"{name}"|"{name}"\s*[=!]=') - pair(f"{folder}/{stem}")
                # What an earlier version recorded of a plain sgd.
                self.assertLessEqual(found, {"src/train/run_start.cpp"} if stem == "sgd" else set(), stem)

    def test_no_family_is_known_by_name(self):
        problems = []
        for folder in ABOVE:
            for path in project.files(f"src/{folder}"):
                code = project.code(path)
                for family in lines_of("models/catalog.inc"):
                    for match in re.finditer(rf"(?i)(?<![a-z0-9]){family}", code):
                        problems.append(f"{project.name(path)}:{project.line_of(code, match.start())}: {family}")
        self.assertFalse(problems, project.report(problems))

    def test_no_kind_of_tokenizers_is_known_by_name(self):
        kinds = lines_of("data/tokenizers/catalog.inc")
        own = {project.name(path) for kind in kinds
               for path in (SRC / "data" / "tokenizers").glob(kind.replace("tokenizer", "*"))}
        own |= {path for family in lines_of("models/catalog.inc") for path in pair(f"models/{family}")}
        own.add("src/cli/export.cpp")  # its subcommand `hf` is called as users call the form, not the tokenizer
        names = "|".join(kind.replace("_tokenizer", "") for kind in kinds)
        self.assertEqual(named_in(rf'"(?:{names})"') - own, set())

    def test_a_key_of_a_model_stands_in_one_place(self):
        """In its family's fields(); what the data says, and how long a sequence is, others ask for by key."""
        keys, asked_for = set(), {"context"}
        for path in project.files("src/models"):
            for match in re.finditer(r'\bsetting\(\s*"(\w+)"(.*?)(?=\bsetting\(|\}\s*;)', project.code(path), re.S):
                keys.add(match.group(1))
                if "is_of_data" in match.group(2) or re.search(r"\bof_data\b", match.group(2)):
                    asked_for.add(match.group(1))
        self.assertLessEqual({"layers", "kv_heads", "hidden", "filters", "blocks", "activation"}, keys)
        self.assertLessEqual({"vocab", "classes", "features"}, asked_for)
        problems = []
        for folder in ABOVE:
            for path in project.files(f"src/{folder}"):
                if path.name == "recipe_names.cpp":  # what other programs call our keys
                    continue
                code = project.code(path)
                for match in re.finditer(r'(?:"(?:model\.|--)|\b(?:find|whole|at|contains|erase)\(")(\w+)"', code):
                    if match.group(1) in keys - asked_for:
                        problems.append(f"{project.name(path)}:{project.line_of(code, match.start())}: {match.group(0)}")
        self.assertFalse(problems, project.report(problems))

    def test_nobody_asks_what_class_something_is(self):
        """What differs is a virtual function, or a member of a record."""
        self.assertEqual(named_in(r"\bdynamic_cast\b|\bdynamic_pointer_cast\b|\btypeid\b"), set())

    def test_a_model_of_a_programs_own_is_sixty_lines(self):
        """With callback, checkpoints, resume and report: lines of code, without those of comments and blank ones."""
        code = project.code(project.ROOT / "examples" / "own_model.cpp")
        self.assertLessEqual(sum(bool(line.strip()) for line in code.splitlines()), 60)

    def test_the_page_says_what_is_counted_here(self):
        page = re.sub(r"\s+", " ", project.text(project.ROOT / "CONTRIBUTING.md"))
        for said in ("A family of models is 2 files and 1 line", "a task 2 files and 1 line",
                     "a source of examples 2 files and 1 line", "a kind of tokenizers 2 files and 1 line",
                     "an optimizer 2 files and 1 line", "a key of a model 1 place"):
            self.assertTrue(said in page, said)


if __name__ == "__main__":
    unittest.main()
