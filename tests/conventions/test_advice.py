"""What messages and pages tell a user to call exists: functions in a header, verbs in the program,
options among the verbs' own."""

import functools
import re
import unittest

import project

ERRORS = "(?:UserError|DataError|EnvironmentError|DivergedError|InternalError)"
# (object's dot, name, whether something is passed)
CALL = re.compile(r"(\.?)\b((?:\w+::)*[A-Za-z_]\w*)\((?=(\)?))")
# What is no function of Aloft's: the text form of a loss scale, CMake's, OpenMP's, and on
# CONTRIBUTING.md an op that it makes up, catalogues' macros and a CMake function of the build.
OTHERS = {"dynamic", "constant", "find_package", "omp_set_num_threads", "softshrink", "OPS",
          "KERNELS", "aloft_test"}


@functools.cache
def declared():
    """Names of all functions in headers, and those of the free ones, which begin a line."""
    headers = [project.code(p) for top in ("src", "include") for p in project.files(top, {".h"})]
    text = "\n".join(headers)
    free = re.findall(r"^(?![ #}/])[^\n(=]*?\b(\w+)\(", text, re.M)
    return set(re.findall(r"\b(\w+)\(", text)), set(free)


def missing(text):
    """Functions that the text calls and no header has. With arguments and without an object, as in
    mean(loss), a free one is meant."""
    everywhere, free = declared()
    for dot, name, empty in CALL.findall(text):
        last = name.split("::")[-1]
        if last not in OTHERS and last not in (everywhere if dot or empty or "::" in name
                                                else free):
            yield name


def messages():
    """(place, text) of every statement that makes an error or says something: its literals, joined where
    adjacent."""
    for path in project.files("src"):
        source = project.code(path)
        for start in re.finditer(r"\b" + ERRORS + r"\b[^;{}]*[({]|\.advice\(|\bfail\(|\bcheck\(",
                                 source):
            end = source.find(";", start.start())
            literals = re.findall(r'"((?:\\.|[^"\\\n])*)"(\s*)', source[start.start():end])
            text = "".join(t + ("" if space or t.endswith(" ") else " | ") for t, space in literals)
            yield f"{project.name(path)}:{project.line_of(source, start.start())}", text


@functools.cache
def verbs():
    """The program's verbs, and of those that have some the words that may follow."""
    source = project.code(project.ROOT / "src/cli/verbs.cpp")
    known = {verb: set() for verb in re.findall(r'\{"([a-z-]+)",', source)}
    for verb, own in known.items():
        path = project.ROOT / f"src/cli/{verb}.cpp"
        code = project.code(path)
        own |= set(re.findall(r'add_subcommand\("([a-z-]+)"', code))
        if "kSubjects[] = {" in code:
            table = code[code.index("kSubjects[] = {"):]
            own |= set(re.findall(r'\{"([a-z-]+)",', table[:table.index("};")]))
    return known


def wrong_verbs(text):
    """What a text calls of the program and is not there: "data pack". In a sentence a verb that takes
    another stands with it; alone it is the verb."""
    for verb, own in re.findall(r"(?<![\w.-])aloft ([a-z-]+)(?:[ ]([a-z-]+))?", text):
        if verb not in verbs():
            yield verb
        elif verbs()[verb] and own and own not in verbs()[verb]:
            yield f"{verb} {own}"


def pages():
    yield from (project.ROOT / n for n in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"))
    yield from project.files("docs", {".md"})


def spans(page):
    """(line, text) of what a page sets as code, blocks left out."""
    fenced = False
    for number, line in enumerate(project.text(page).splitlines(), 1):
        fenced ^= line.startswith("```")
        if not fenced:
            yield from ((number, span) for span in re.findall(r"`([^`]+)`", line))


class Advice(unittest.TestCase):
    def test_functions_in_messages_exist(self):
        problems = sorted({f"{place}: there is no function {name}()" for place, text in messages()
                           for name in missing(text)})
        self.assertFalse(problems, project.report(problems))

    def test_functions_on_pages_exist(self):
        problems = [f"{project.name(page)}:{line}: there is no function {name}()"
                    for page in pages() for line, span in spans(page) for name in missing(span)]
        self.assertFalse(problems, project.report(problems))

    def test_the_verbs_are_read(self):
        self.assertEqual(verbs()["data"], {"batches", "build", "info"})
        self.assertEqual(verbs()["bench"], {"step", "generate"})
        self.assertLessEqual({"precision", "plan"}, verbs()["explain"])
        self.assertEqual(verbs()["train"], set())
        self.assertEqual(list(wrong_verbs("a shard of aloft data pack, or `aloft trian R`")),
                         ["data pack", "trian"])

    def test_verbs_exist(self):
        said = [(f"{project.name(page)}:{line}", span) for page in pages()
                for line, span in spans(page) if span.startswith("aloft ")]
        problems = [f"{place}: there is no verb {verb}" for place, text in (*said, *messages())
                    for verb in wrong_verbs(text)]
        self.assertFalse(problems, project.report(problems))

    def test_options_exist(self):
        known = set()
        for path in project.files("src/cli"):
            for literal in re.findall(r'"((?:\\.|[^"\\\n])*)"', project.code(path)):
                known |= set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", literal))
        problems = [f"{place}: there is no option {option}" for place, text in messages()
                    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)
                    if option not in known]
        problems += [f"docs/errors.md:{line}: there is no option {option}"
                     for line, span in spans(project.ROOT / "docs/errors.md")
                     for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", span)
                     if option not in known]
        self.assertFalse(problems, project.report(problems))


if __name__ == "__main__":
    unittest.main()
