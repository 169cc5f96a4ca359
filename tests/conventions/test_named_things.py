"""What the map, the table of errors and the first page name in backticks is there: functions, types,
files, verbs, options, keys of recipes, targets of make, variables of the environment."""

import re
import unittest

import project

PAGES = ("ARCHITECTURE.md", "docs/errors.md", "README.md")
# Words of formats and of other programs, which have no place here to be found at.
OUTSIDE = {"ulimit", "OMP_NUM_THREADS", "config.json", "vocab.json", "merges.txt"}


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
        cli = "\n".join(project.code(p) for p in project.files("src/cli"))
        self.flags = set(re.findall(r'"(--[a-z][\w-]*)', cli)) | {"--help", "--version"}
        self.verbs = set(re.findall(r'\{"(\w+)", "', project.code(project.ROOT / "src/cli/verbs.cpp")))
        fields = project.code(project.ROOT / "src/train/recipe_fields.cpp")
        self.keys = set(re.findall(r'"((?:model|data|optimizer|schedule|train)\.[\w.]+)"', fields))
        self.targets = set(re.findall(r"^([\w-]+):", project.text(project.ROOT / "Makefile"), re.M))

    def problem(self, text):
        """What is wrong with a text in backticks; None where it is right, or no name."""
        first = text.split()[0]
        if first in OUTSIDE or text in OUTSIDE:
            return None
        for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", text):
            if flag not in self.flags:
                return f"no verb has the option {flag}"
        for key in re.findall(r"\b(?:model|data|optimizer|schedule|train)\.[a-z_]+(?:\.[a-z_]+)?\b(?!\()", text):
            if key not in self.keys:
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
            named_elsewhere = text in project.text(project.ROOT / "CMakeLists.txt") or call and \
                call.group(1) == "find_package"
            return None if name in self.words or named_elsewhere else f"the sources have no {name}"
        if re.fullmatch(r"ALOFT_\w+(=\w+)?", text):
            name = text.split("=")[0]
            return None if f'"{name}"' in self.code else f"the sources do not read {name}"
        if re.fullmatch(r"[\w.\-]+(/[\w.<>\-]*)+", text):
            pattern = re.sub(r"<\w+>", "*", text).rstrip("/")
            made = pattern.startswith(("build/", "checkpoints", "runs/"))
            return None if made or any(project.ROOT.glob(pattern)) else f"there is no {text}"
        if re.fullmatch(r"[\w\-]+\.(?:json|jsonl|md|inc|html|h|cpp)", text):
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
                      "NoSuchType", "no_such_function", "nothing.json"):
            self.assertTrue(known.problem(wrong), wrong)


if __name__ == "__main__":
    unittest.main()
