"""What the pages name in backticks is there: functions, types, files, verbs, options, keys of recipes,
targets of make, tests, variables of the environment."""

import fnmatch
import re
import unittest

import project

# Decisions that were overturned keep the names of their time.
OVERTURNED = "overturned by"
PAGES = sorted(project.name(p) for p in project.pages()
               if OVERTURNED not in project.text(p) or p.name == "README.md")
# Words of formats and of other programs, which have no place here to be found at, and kinds of names.
OUTSIDE = {"ulimit", "OMP_NUM_THREADS", "config.json", "vocab.json", "merges.txt", "retain_graph", "kName", "recipe.toml:12",
           "DynamicLossScaleManager", "FixedLossScaleManager", "AnonHugePages", "CamelCase",
           "snake_case", "data/tinyshakespeare/input.txt", "nohup", "madvise", "GOMP_SPINCOUNT",
           "GOMP_CPU_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND", "MADV_HUGEPAGE"}
PROGRAMS = {"ctest", "numactl", "tensorboard", "apt", "yes", "python3"}
# What begins so is another library's.
LIBRARIES = ("torch.", "transformers.", "std::")
# The op that CONTRIBUTING.md makes up.
EXAMPLE = "softshrink"
FILE = r"\.(?:json|jsonl|md|inc|html|h|cpp|py|toml|txt|csv|lock|safetensors)"
SECTIONS = "model|data|optimizer|schedule|train|precision"


def named(page):
    """(line, text) of everything in backticks outside of code blocks."""
    text = re.sub(r"```.*?```", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  project.text(project.ROOT / page), flags=re.S)
    return [(project.line_of(text, m.start()), m.group(1)) for m in re.finditer(r"`([^`\n]+)`", text)]


class Known:
    """What the tree has."""

    def __init__(self):
        sources = project.files("src") + project.files("include")
        self.code = "\n".join(project.code(p) for p in sources)
        self.words = set(re.findall(r"\w+", self.code))
        for path in project.files("python", {".py"}):  # what the package offers
            self.words |= set(re.findall(r"^def (\w+)", project.text(path), re.M))
        # Tests, benches and their programs: names in their sources and in the build, and of files.
        texts = {".cpp", ".h", ".py", ".txt"}
        around = [p for p in project.files("tests", texts) + project.files("bench", texts)
                  + project.files("tools", texts | {""})  # programs without a suffix
                  if not {"conventions", "corpus", "__pycache__", ".cache"} & set(p.parts)]
        self.around_text = "\n".join(map(project.text, around))
        self.around = set(re.findall(r"\w+", self.around_text))
        self.around |= {p.stem for p in around}
        self.named_with_hyphens = set(re.findall(r"\w+(?:-\w+)+", self.around_text))
        self.named_with_hyphens |= {p.stem for p in (project.ROOT / "recipes").glob("*.toml")}
        self.around |= {"cli_" + p.stem.removesuffix("_test") for p in around
                        if p.parent.name == "cli"}
        self.tool_flags = set(re.findall(r"--[a-z][\w-]*", self.around_text))
        cli = "\n".join(project.code(p) for p in project.files("src/cli"))
        self.flags = set(re.findall(r'"(--[a-z][\w-]*)', cli)) | {"--help", "--version"}
        self.verbs = set(re.findall(r'\{"(\w+)", "', project.code(project.ROOT / "src/cli/verbs.cpp")))
        fields = "".join(project.code(project.ROOT / "src/recipe" / name)
                         for name in ("recipe_fields.cpp", "tokenizer_keys.cpp"))
        self.keys = set(re.findall(rf'"((?:{SECTIONS})\.[\w.]+)"', fields))
        for record in project.files("src/models", {".h"}):
            self.keys |= {f"model.{key}" for key in re.findall(r'\bsetting\("(\w+)"', project.code(record))}
        self.flags |= {f"--{key.removeprefix('model.')}" for key in self.keys if key.startswith("model.")}
        for kind in (project.ROOT / "src/data/tokenizers").glob("*_tokenizer.cpp"):
            settings = re.search(r"kind\.settings = (.*?);", project.code(kind))
            self.keys |= {f"data.tokenizer.{key}" for key in re.findall(r'\{"(\w+)",', settings.group(1) if settings else "")}
        precision = project.code(project.ROOT / "src/precision/recipe_json.cpp")
        lists = re.findall(r"kKeys = \{(.*?)\}|kScaleKeys = \{(.*?)\}", precision, re.S)
        self.keys |= {f"precision.{key}" for key in re.findall(r'"(\w+)"', lists[0][0])}
        self.words |= {row["folder"] for row in project.table("ARCHITECTURE.md", "folder")}
        self.targets = set(re.findall(r"^([\w-]+):", project.text(project.ROOT / "Makefile"), re.M))
        self.build = "".join(map(project.text, [project.ROOT / "CMakeLists.txt",
                                                *project.files("cmake", {".cmake"})]))
        rows = project.text(project.ROOT / "tools/side_by_side/rows.py")
        self.words_of_rows = set(re.findall(r"\w+", re.sub(r'f"([\w-]+)-\{', r" \1 ", rows)))
        self.build_words = set(re.findall(r"\w+", self.build))
        fixtures = project.files("tests/fixtures", {".json"}) + project.files("tools/peers", {".py"})
        self.around |= set(re.findall(r"\w+", "".join(map(project.text, fixtures))))

    def is_word(self, word):
        """Whether a name of letters, digits and underlines is in the sources, or around them."""
        return word in self.words or word in self.around or word in self.verbs or self.is_composed(word)

    def is_composed(self, word):
        """Names that the program puts together: of an optimizer's ops, of what evaluations measure."""
        formula = re.fullmatch(r"(\w+)_(?:update|sums|numbers)", word)
        measure = re.fullmatch(r"(?:val_)?(?:average_)?(\w+)", word)
        return formula and f'"{formula.group(1)}"' in self.code or \
            measure and measure.group(1) != word and f'"{measure.group(1)}"' in self.code

    def wrong_option(self, text):
        first = text.split()[0]
        ours = first == "aloft" or first.startswith("--")
        for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", text):
            others = first != "aloft" and (flag in self.tool_flags or flag.startswith("--gtest_"))
            if flag not in self.flags and not others:
                return f"no {'verb' if ours else 'tool'} has the option {flag}"
        return None

    def wrong_key(self, text):
        """Keys wherever they stand: `train.steps`, `--set KEY=VALUE`, `[train] steps = 3`."""
        keys = re.findall(rf"(?<![/\w.])((?:{SECTIONS})\.[a-z_]+(?:\.[a-z_]+)?\b\*?)(?!\()", text)
        keys += re.findall(r"--set '?([a-z][\w.]*)", text)
        keys += [f"{section}.{key}" for section, key in re.findall(r"\[(\w+)\] (\w+)", text)]
        for key in keys:
            if not fnmatch.filter(self.keys, key) and not re.search(FILE + "$", key):
                return f"no recipe has the key {key}"
        return None

    def wrong_variable(self, text):
        """Variables of the environment and other names in capitals."""
        for name in re.findall(r"(?<!\w)[A-Z][A-Z0-9]*_[A-Z0-9_]+(?!\w)", text):
            if name.startswith("ALOFT_") and f'"{name}"' not in self.code and name not in self.around:
                return f"the sources do not read {name}"
            if name not in OUTSIDE and not self.is_word(name) and name not in self.build_words:
                return f"nothing reads {name}"
        return None

    def wrong_call(self, text):
        call = re.fullmatch(r"([\w:.]+)\(.*\)", text)
        name = re.split(r"::|\.", call.group(1) if call else text)[-1]
        named_elsewhere = text in self.build or f"function({name} " in self.build or call and \
            call.group(1) == "find_package"
        scopes = re.split(r"::", call.group(1) if call else text)[:-1]
        known = name in self.words or named_elsewhere or text == name and name in self.around or \
            self.is_composed(name)
        known = known and all(scope in self.words for scope in scopes)
        return None if known else f"the sources have no {name}"

    def wrong_path(self, text, page):
        """Files and folders, from the root, from src or from the page's own folder."""
        pattern = re.sub(r"<\w+>", "*", text).rstrip("/")
        made = pattern.startswith(("build/", "checkpoints", "probe/", "runs", "samples/", "tokenizer/", "init/")) or \
            ".cache/" in pattern or f'"{pattern}"' in self.code  # of a run directory
        tag = re.fullmatch(r"(?:train|validation|trends|alerts)/(\w+)(?:/[\w.]+)?", text)  # of TensorBoard
        places = [project.ROOT, project.ROOT / "src", (project.ROOT / page).parent,
                  project.ROOT / "tests/fixtures"]
        there = any(any(place.glob(pattern)) for place in places)
        return None if made or there or tag and self.is_tag(tag.group(1)) else f"there is no {text}"

    @staticmethod
    def is_file(name):
        """Of the tree; builds come and go meanwhile."""
        folders = [f for f in project.ROOT.iterdir() if f.is_dir() and not f.name.startswith((".", "build"))]
        return any(project.ROOT.glob(name)) or any(any(f.rglob(name)) for f in folders)

    def is_tag(self, name):
        return name.isupper() or name in self.words or self.is_composed(name)

    def wrong_dotted(self, text):
        """`a.*`, `a.NAME`: files of fixtures, or names of tensors that the sources or the judges make."""
        there = any(project.ROOT.glob(f"tests/fixtures/**/{text}"))
        start = '"' + re.split(r"NAME|\*", text)[0]
        made = start in self.code or f'"{text}"' in self.around_text or \
            not text.endswith("*") and start in self.around_text
        return None if there or made else f"nothing has the name {text}"

    def problem(self, text, page="README.md"):
        """What is wrong with a text in backticks; None where it is right, or no name."""
        first = text.split()[0]
        if first in OUTSIDE or text in OUTSIDE or first in PROGRAMS or EXAMPLE in text or \
                text.startswith(LIBRARIES):
            return None
        if wrong := self.wrong_option(text) or self.wrong_key(text) or self.wrong_variable(text):
            return wrong
        if first == "aloft" and len(text.split()) > 1:
            verb = text.split()[1]
            return None if verb in self.verbs or verb.isupper() else f"there is no verb {verb}"
        if first == "make":
            target = text.split()[1]
            return None if target in self.targets else f"make has no target {target}"
        if re.fullmatch(r"[\w:.]+\(.*\)|[A-Za-z_]\w*(?:::\w+)+|(?:[A-Z][a-z]+){2,}|[a-z]+_\w+", text):
            return self.wrong_call(text)
        if "/" in first and first != text:
            return self.problem(first, page)
        if re.fullmatch(r"[\w.\-*]+(/[\w.<>\-*]*)+", text):
            return self.wrong_path(text, page)
        if re.fullmatch(r"[\w\-]+" + FILE + r"(:\d+)?", text):
            text = text.split(":")[0]
            there = self.is_file(text) or f'"{text}"' in self.code or f"/{text}" in self.code
            return None if there else f"nothing has the name {text}"
        if re.fullmatch(r"[a-z][\w]*(\.[\w*]+)+", text) and not fnmatch.filter(self.keys, text):
            return self.wrong_dotted(text)
        if re.fullmatch(r"[a-z]\w*(-\w+)+", text):
            there = text in self.code or text in self.named_with_hyphens or \
                set(text.split("-")) <= self.words_of_rows
            return None if there else f"nothing has the name {text}"
        if re.fullmatch(r"[A-Za-z]\w+", text):
            return None if self.is_word(text) else f"the sources have no {text}"
        return None


class NamedThings(unittest.TestCase):
    def test_what_pages_name_is_there(self):
        known = Known()
        problems = [f"{page}:{line}: `{text}`: {problem}"
                    for page in PAGES for line, text in named(page)
                    if (problem := known.problem(text, page))]
        self.assertFalse(problems, project.report(problems))

    def test_what_is_not_there_is_found(self):
        known = Known()
        for wrong in ("to_host()", "amp::initialise", "aloft trian", "aloft train --frobnicate",
                      "make tea", "src/nowhere/x.cpp", "ALOFT_NOTHING=1", "train.bacth",
                      "NoSuchType", "no_such_function", "nothing.json", "train.frequency_*",
                      "tools/bench_peers --frobnicate", "tools/no_such_tool --page", "aloft bench --page",
                      "train/nothing.h", "train/no_such_tag", "data.nothing", "ops_nothing",
                      "precision.mathmul", "modle.vocab", "modle.*", "nothing.at.all", "--set modle.vocab=3",
                      "[train] bacth = 3", "[optimiser] lr", "OMP_WAIT", "OMP_WAIT_POLICYY=active",
                      "OMP_WAIT=active build/bin/regions_bench", "JUDGE_PYTON", "recepe", "Optimzer",
                      "Tensorr::data", "fuse-nothing", "nothing.toml", "checkpoint/step-*", "nothing/*.py"):
            with self.subTest(wrong):
                self.assertTrue(known.problem(wrong))


if __name__ == "__main__":
    unittest.main()
