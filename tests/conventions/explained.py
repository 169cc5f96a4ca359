"""The tables of pages that say what arguments of another system are here."""


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
