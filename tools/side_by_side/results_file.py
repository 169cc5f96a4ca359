"""The file of a run: one revision, one machine, one sitting. Nothing is ever mixed into it."""
import json
import os
import sys

SCHEMA = 2
OLD_SCHEMA = 1  # rows of several revisions, and a limit that counted bytes twice: shown with a notice
SAME_MACHINE = ("processor", "features", "cores")


def check_replaceable(path, machine):
    """A run starts a file anew; what it would replace must be an older run of this machine."""
    if not path.exists():
        return
    try:
        old = json.loads(path.read_text())
        there, schema = old["machine"], old["schema"]
    except (ValueError, KeyError, TypeError):
        sys.exit(f"bench_peers: {path} is no file of results; name another, or remove it")
    if schema not in (SCHEMA, OLD_SCHEMA):
        sys.exit(f"bench_peers: {path} has schema {schema}, this program writes {SCHEMA}")
    if any(there.get(k) != machine[k] for k in SAME_MACHINE):
        sys.exit(f"bench_peers: {path} was measured on {there.get('cores')} cores of "
                 f"{there.get('processor')}, not on this machine; name another file")


def new(machine, run):
    return {"schema": SCHEMA, "machine": machine, "run": run, "rows": []}


def table_of(results):
    """The rows that there were when it was measured; of a file that does not say, those that it has: its
    program, too, refused a page with less than all."""
    return results["run"].get("table") or [row["name"] for row in results["rows"]]


def why_no_page(results, all_rows):
    """What keeps a run from being a page: None where it is one run of all rows on a clean revision."""
    run, there = results["run"], [row["name"] for row in results["rows"]]
    missing = [name for name in all_rows if name not in there]
    if missing:
        return "rows are missing: " + ", ".join(missing)
    if run["quick"]:
        return "a quick run proves nothing"
    if not run["revision"].isalnum():
        return f"{run['revision']} is not a clean revision (+: changed files, ?: a program older than src)"
    if run["rounds"] < 5:
        return f"{run['rounds']} rounds are too few; a page needs 5"
    return None


def write(path, text):
    """Complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with part.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def save(path, results):
    write(path, json.dumps(results, indent=1) + "\n")
