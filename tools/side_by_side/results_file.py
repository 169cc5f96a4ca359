"""The file of a run: whole after every row, or as it was before."""
import json
import os
import sys

SCHEMA = 1


def load(path, machine):
    """The rows that are there already, so that a run can be continued with --only."""
    if not path.exists():
        return {"schema": SCHEMA, "machine": machine, "rows": []}
    try:
        got = json.loads(path.read_text())
        there, schema = got["machine"], got["schema"]
    except (ValueError, KeyError, TypeError):
        sys.exit(f"bench_peers: {path} is no file of results; name another, or remove it")
    if schema != SCHEMA:
        sys.exit(f"bench_peers: {path} has schema {schema}, this program writes {SCHEMA}")
    same = ("processor", "features", "cores")
    if any(there.get(k) != machine[k] for k in same):
        sys.exit(f"bench_peers: {path} was measured on {there.get('cores')} cores of "
                 f"{there.get('processor')}, not on this machine; name another file")
    return got | {"machine": machine}


def put(results, row, order):
    """A row that was measured again takes the place of the older one."""
    rows = {r["name"]: r for r in results["rows"]} | {row["name"]: row}
    results["rows"] = [rows[name] for name in order if name in rows]


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
