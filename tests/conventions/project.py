"""What the convention tests know about the tree: its files, includes, CMake targets and tables.

Python, and nothing but its standard library: these tests read text, need no compilation, and a
person changing a table sees the answer in a tenth of a second (python3 -m unittest discover
tests/conventions).
"""

import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE_SUFFIXES = {".cpp", ".h", ".inc", ".cu"}
HAND_WRITTEN = ("src", "include", "tests", "bench", "examples", "tools", "cmake", "python")


def files(top, suffixes=SOURCE_SUFFIXES):
    """Paths below ROOT/top with one of the suffixes, sorted; none of what tools/judge/run has installed."""
    folder = ROOT / top
    return sorted(p for p in folder.rglob("*")
                  if p.suffix in suffixes and ".cache" not in p.relative_to(folder).parts and p.is_file())


def pages():
    """The pages of the tree: not those of what is built or installed below it."""
    return sorted(p for top in ("", *HAND_WRITTEN, "docs", "recipes")
                  for p in (ROOT / top).glob("*.md" if top == "" else "**/*.md")
                  if not {".cache", "corpus"} & set(p.parts))


def name(path):
    return path.relative_to(ROOT).as_posix()


@functools.cache
def text(path):
    return path.read_text(encoding="utf-8")


# A string or character literal (kept) or a comment (blanked, newlines kept).
_TOKEN = re.compile(
    r'R"(?P<delimiter>[^()\s\\]*)\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/',
    re.S,
)


@functools.cache
def code(path):
    """The file without its comments, lines unmoved."""

    def blank(match):
        found = match.group(0)
        return re.sub(r"[^\n]", " ", found) if found.startswith(("//", "/*")) else found

    return _TOKEN.sub(blank, text(path))


def line_of(source, offset):
    return source.count("\n", 0, offset) + 1


def includes(path):
    """(line, '"' or '<', header) of every #include."""
    source = code(path)
    pattern = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)
    return [(line_of(source, m.start()), m.group(1), m.group(2)) for m in pattern.finditer(source)]


def offered(folder):
    """Stems of the lines of src/<folder>/catalog.inc that the build makes aloft/catalogs/<folder>.h of, as
    the folder's CMakeLists.txt asks for (cmake/catalogue_header.cmake); None where it asks for none."""
    asked = re.search(rf"^catalogue_header\({folder} ([A-Z_]+)\)$",
                      text(ROOT / "src" / folder / "CMakeLists.txt"), re.M)
    if not asked:
        return None
    return re.findall(rf"^{asked.group(1)}\((\w+)(?:, \w+)?\)\s*$", code(ROOT / "src" / folder / "catalog.inc"), re.M)


def named_by(header):
    """What an include of `header` brings: paths of our files, those that a header which the build writes
    from a catalogue names; none for one of the C++ library."""
    made = re.fullmatch(r"aloft/catalogs/(\w+)\.h", header)
    if made and (stems := offered(made.group(1))) is not None:
        return [ROOT / "src" / made.group(1) / f"{stem}.h" for stem in stems]
    return [p for p in (ROOT / "src" / header, ROOT / "include" / header) if p.is_file()]


def table(page, first_column):
    """Rows (lists of cells) of the table in a Markdown page whose first header cell is given."""
    rows, inside = [], False
    for line in text(ROOT / page).splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == first_column:
            inside, header = True, cells
        elif inside and not set(line) <= set("|-: "):
            rows.append(dict(zip(header, cells)))
    return rows


def folder_rules():
    """folder -> list of (allowed folder, '' or 'attribute headers' or 'interface'); None: all."""
    rules = {}
    for row in table("ARCHITECTURE.md", "folder"):
        if "may include" not in row:
            continue
        cell = row["may include"]
        if cell == "everything":
            rules[row["folder"]] = None
            continue
        parts = [] if cell == "-" else [part.strip() for part in cell.split(",")]
        found = [re.fullmatch(r"([\w/]+)(?: \(([\w ]+)\))?", part) for part in parts]
        assert all(found), f"ARCHITECTURE.md: cannot read the row of {row['folder']}: {cell}"
        rules[row["folder"]] = [(m.group(1), m.group(2) or "") for m in found]
    return rules


@functools.cache
def folders():
    """Every folder that the table names; where they nest, the longest comes first."""
    return sorted(folder_rules(), key=len, reverse=True)


def folder_of(source_path):
    """'backends/cpu' for 'backends/cpu/kernels/softmax.cpp'; None where the table has no row."""
    for folder in folders():
        if source_path.startswith(folder + "/"):
            return folder
    return None


@functools.cache
def targets():
    """target name -> (folder of its CMakeLists.txt below src, USES or None, CMake file)."""
    found = {}
    for cmake in sorted((ROOT / "src").rglob("CMakeLists.txt")):
        source = re.sub(r"#[^\n]*", "", text(cmake))
        folder = cmake.parent.relative_to(ROOT / "src").as_posix()
        for match in re.finditer(r"\baloft_library\(\s*(\w+)([^)]*)\)", source):
            words = match.group(2).split()
            uses, keyword = [], None
            for word in words:
                if word in ("SOURCES", "USES", "LINK", "DEFINES"):
                    keyword = word
                elif keyword == "USES":
                    uses.append(word)
            found[match.group(1)] = (folder, uses, name(cmake))
        for match in re.finditer(r"\badd_library\(\s*aloft_(\w+)\s+INTERFACE", source):
            found[match.group(1)] = (folder, None, name(cmake))
    return found


@functools.cache
def reaches(header, folder):
    """Whether src/<header>, followed through our includes, gets to a header of the folder."""
    seen, todo = set(), [header]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        if current != header and current.startswith(folder + "/"):
            return True
        path = ROOT / "src" / current
        if path.is_file():
            todo += [h for _, kind, h in includes(path) if kind == '"']
    return False


def report(problems):
    """The text of a failed assertion: one problem a line."""
    return "\n" + "\n".join(problems)
