"""The tables of pages that say what arguments of another system are here, and their blocks of code."""

import re

import project


def blocks(text, language):
    """The blocks of code of a language in the text of a page."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def is_in_an_example(block):
    """Whether the block stands, line by line and wherever its lines begin, in a program that the tests build."""
    def lines_of(text):
        return [line.strip() for line in text.splitlines() if line.strip()]

    wanted = lines_of(block)
    return any(wanted == lines[i:i + len(wanted)] for path in project.files("examples")
               for lines in [lines_of(project.text(path))] for i in range(len(lines)))


def tables(page):
    """Of each heading `### name` the rows of its tables, as lists of cells; by the name of the first column."""
    found, heading, column = {}, None, None
    for line in page.read_text().splitlines():
        if line.startswith("#"):
            heading = line.removeprefix("### ") if line.startswith("### ") else None
        elif heading and line.startswith("| ") and not line.startswith("| ---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            cells = [cell.strip(" |") for cell in cells]
            if not cells[0].startswith("`"):
                column = cells[0]
            else:
                found.setdefault((heading, column), []).append(cells)
    return found


def explained(found, heading, column):
    """What the rows of a heading's table explain."""
    return [cells[0].strip("`") for cells in found.get((heading, column), [])]


def differences(rows, calls):
    """Where rows of argument, whose, what it is here do not explain what the calls take, by name: what is missing, and
    what is explained and not there. "all" are all that have the argument."""
    found = []
    for name, arguments in calls.items():
        own = [cells[0].strip("`") for cells in rows if name in re.split(r",\s*", cells[1])]
        said = set(own) | {cells[0].strip("`") for cells in rows if cells[1] == "all"}
        found += [f"{name}({argument}) is not explained" for argument in arguments if argument not in said]
        found += [f"{name} has no {argument}" for argument in own if argument not in arguments]
    known = set(calls)
    for cells in rows:
        strangers = set(re.split(r",\s*", cells[1])) - known - {"all"}
        found += [f"no {name}: {cells[0]}" for name in sorted(strangers)]
    return found


def of_package(calls, package):
    """Those of a package, by their names in it."""
    return {name.removeprefix(package + "."): arguments for name, arguments in calls.items()
            if name.startswith(package + ".")}
