"""A fixture that says what the sources of an installed package say: written anew, or with --check compared."""
import json
import pathlib
import sys

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures"


def main(name, build, usage):
    """Of the folder that the command line names: build(folder) becomes tests/fixtures/NAME.json."""
    folders = [pathlib.Path(word) for word in sys.argv[1:] if word != "--check"]
    if len(folders) != 1:
        sys.exit(usage)
    fixture, text = FIXTURES / f"{name}.json", json.dumps(build(folders[0]), indent=1) + "\n"
    if "--check" not in sys.argv:
        fixture.write_text(text)
    elif fixture.read_text() != text:
        sys.exit(f"{fixture} is not what {folders[0]} says")
