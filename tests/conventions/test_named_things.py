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
OUTSIDE = {"ulimit", "OMP_NUM_THREADS", "config.json", "vocab.json", "merges.txt", "retain_graph",
           "DynamicLossScaleManager", "FixedLossScaleManager", "AnonHugePages", "CamelCase",
           "snake_case"}
PROGRAMS = {"ctest", "numactl", "tensorboard"}
# The op that CONTRIBUTING.md makes up.
EXAMPLE = "softshrink"
FILE = r"\.(?:json|jsonl|md|inc|html|h|cpp|py|safetensors)"


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
        # Tests, benches and their programs: names in their sources and in the build, and of files.
        texts = {".cpp", ".h", ".py", ".txt"}
        around = [p for p in project.files("tests", texts) + project.files("bench", texts)
                  + project.files("tools", texts | {""})  # programs without a suffix
                  if not {"conventions", "corpus", "__pycache__", ".cache"} & set(p.parts)]
        self.around = set(re.findall(r"\w+", "\n".join(project.text(p) for p in around)))
        self.around |= {p.stem for p in around}
        self.around |= {"cli_" + p.stem.removesuffix("_test") for p in around
                        if p.parent.name == "cli"}
        self.tool_flags = set(re.findall(r"--[a-z][\w-]*", "\n".join(
            project.text(p) for p in around)))
        cli = "\n".join(project.code(p) for p in project.files("src/cli"))
        self.flags = set(re.findall(r'"(--[a-z][\w-]*)', cli)) | {"--help", "--version"}
        self.verbs = set(re.findall(r'\{"(\w+)", "', project.code(project.ROOT / "src/cli/verbs.cpp")))
        fields = project.code(project.ROOT / "src/train/recipe_fields.cpp")
        self.keys = set(re.findall(r'"((?:model|data|optimizer|schedule|train)\.[\w.]+)"', fields))
        self.targets = set(re.findall(r"^([\w-]+):", project.text(project.ROOT / "Makefile"), re.M))

    def problem(self, text):
        """What is wrong with a text in backticks; None where it is right, or no name."""
        first = text.split()[0]
        if first in OUTSIDE or text in OUTSIDE or first in PROGRAMS or EXAMPLE in text:
            return None
        ours = first == "aloft" or first.startswith("--")
        for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", text):
            others = first != "aloft" and (flag in self.tool_flags or flag.startswith("--gtest_"))
            if flag not in self.flags and not others:
                return f"no {'verb' if ours else 'tool'} has the option {flag}"
        key_of = r"(?<!/)\b(?:model|data|optimizer|schedule|train)\.[a-z_]+(?:\.[a-z_]+)?\b\*?(?!\()"
        for key in re.findall(key_of, text):
            if not fnmatch.filter(self.keys, key) and not re.search(FILE + "$", key):
                return f"no recipe has the key {key}"
        if first == "aloft" and len(text.split()) > 1:
            verb = text.split()[1]
            return None if verb in self.verbs or verb.isupper() else f"there is no verb {verb}"
        if first == "make":
            target = text.split()[1]
            return None if target in self.targets else f"make has no target {target}"
        call = re.fullmatch(r"([\w:.]+)\(.*\)", text)
        if call or re.fullmatch(r"[a-z_]\w*(?:::\w+)+|(?:[A-Z][a-z]+){2,}|[a-z]+_\w+", text):
            name = re.split(r"::|\.", call.group(1) if call else text)[-1]
            build = "".join(map(project.text, [project.ROOT / "CMakeLists.txt",
                                               *project.files("cmake", {".cmake"})]))
            named_elsewhere = text in build or f"function({name} " in build or call and \
                call.group(1) == "find_package"
            known = name in self.words or named_elsewhere or text == name and name in self.around
            return None if known else f"the sources have no {name}"
        if re.fullmatch(r"ALOFT_\w+(=\w+)?", text):
            name = text.split("=")[0]
            return None if f'"{name}"' in self.code else f"the sources do not read {name}"
        if "/" in first and first != text:
            return self.problem(first)
        if re.fullmatch(r"[\w.\-]+(/[\w.<>\-]*)+", text):
            pattern = re.sub(r"<\w+>", "*", text).rstrip("/")
            made = pattern.startswith(("build/", "checkpoints", "runs")) or \
                f'"{pattern}"' in self.code  # of a run directory
            tag = re.fullmatch(r"(?:train|validation)/(\w+)", text)  # of TensorBoard
            there = any(project.ROOT.glob(pattern)) or any(project.ROOT.glob("src/" + pattern))
            return None if made or there or tag and tag.group(1) in self.words else f"there is no {text}"
        if re.fullmatch(r"[\w\-]+" + FILE, text):
            there = any(project.ROOT.rglob(text)) or f'"{text}"' in self.code or f"/{text}" in self.code
            return None if there else f"nothing has the name {text}"
        return None


class NamedThings(unittest.TestCase):
    def test_what_pages_name_is_there(self):
        known = Known()
        problems = [f"{page}:{line}: `{text}`: {problem}"
                    for page in PAGES for line, text in named(page)
                    if (problem := known.problem(text))]
        self.assertFalse(problems, project.report(problems))

    def test_what_is_not_there_is_found(self):
        known = Known()
        for wrong in ("to_host()", "amp::initialise", "aloft trian", "aloft train --frobnicate",
                      "make tea", "src/nowhere/x.cpp", "ALOFT_NOTHING=1", "train.bacth",
                      "NoSuchType", "no_such_function", "nothing.json", "train.frequency_*",
                      "tools/bench_peers --frobnicate", "tools/no_such_tool --page", "aloft bench --page",
                      "train/nothing.h", "train/no_such_tag", "data.nothing", "ops_nothing"):
            self.assertTrue(known.problem(wrong), wrong)


if __name__ == "__main__":
    unittest.main()
