"""Puts mended bugs back, one at a time, and checks that the test which was written for each fails.

  put_back.py SOURCE [--only NAME ...] [--check] [--list] [--jobs N]

bugs.toml lists them: which text of which file becomes which, what to build, what must fail then. The
work happens on a copy of SOURCE's files below SOURCE/build-put-back; the tree itself is not touched.
--check compiles nothing: it says whether each entry still fits the sources.
"""
import argparse
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib

TIMEOUT = 900  # seconds for a test


def load(source):
    with open(source / "tests" / "faults" / "bugs.toml", "rb") as file:
        bugs = tomllib.load(file)["bug"]
    for bug in bugs:
        bug.setdefault("changes", [{k: bug[k] for k in ("file", "search", "replace") if k in bug}])
    return bugs


def unfit(source, bug):
    """Why an entry cannot be put back, or None."""
    for change in bug["changes"]:
        path = source / change["file"]
        if not path.is_file():
            return f"there is no {change['file']}"
        count = path.read_text().count(change["search"])
        if count != 1:
            return f"{change['file']} has the text {count} times, not once"
        if change["search"] == change["replace"]:
            return "it changes nothing"
    return None


def copy_tree(source, to):
    """The files that git knows or would take. Those that differ get the time of now, so that what a bug
    was put into is built again without it."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           cwd=source, check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (source / name).is_file():
            target = to / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_bytes() != (source / name).read_bytes():
                shutil.copy(source / name, target)
    for path in to.rglob("*"):
        name = str(path.relative_to(to))
        if path.is_file() and name not in names and not name.startswith("build/"):
            path.unlink()


def build(tree, folder, targets, jobs):
    done = subprocess.run(["cmake", "--build", folder, "-j", str(jobs), "--target", *targets],
                          capture_output=True, text=True)
    return None if done.returncode == 0 else done.stdout[-3000:]


def fails(bug, tree, folder):
    """(whether the test fails, its last lines)"""
    command = [word.format(bin=folder / "bin", build=folder) for word in shlex.split(bug["test"])]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, errors="replace",
                              timeout=TIMEOUT, env=dict(os.environ, OMP_WAIT_POLICY="passive"))
    except subprocess.TimeoutExpired:
        return True, "still running"
    return done.returncode != 0, (done.stdout + done.stderr)[-1500:]


def put_back(bug, source, tree, folder, jobs, passed):
    """What is wrong with the net under this bug, or None. `passed`: tests that were seen to pass without
    any bug."""
    copy_tree(source, tree)
    if bug["test"] not in passed:
        if wrong := build(tree, folder, bug["build"], jobs):
            return "the sources do not build: " + wrong
        failed, text = fails(bug, tree, folder)
        if failed:
            return "the test fails without the bug: " + text
        passed.add(bug["test"])
    for change in bug["changes"]:
        path = tree / change["file"]
        path.write_text(path.read_text().replace(change["search"], change["replace"]))
    if wrong := build(tree, folder, bug["build"], jobs):
        return "with the bug it does not build: " + wrong
    failed, text = fails(bug, tree, folder)
    return None if failed else "the test does not notice the bug: " + text


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="bugs whose name holds one of these")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests of it fail where it is ignored
    source = options.source.resolve()
    bugs = [bug for bug in load(source)
            if not options.only or any(part in bug["name"] for part in options.only)]
    if options.list:
        print("\n".join(f"{bug['name']}: {bug['test']}" for bug in bugs))
        return
    # The build lies in the copy as it does in a checkout: the compiler's cache knows it then.
    tree = source / "build-put-back"
    folder = tree / "build"
    if not options.check:
        copy_tree(source, tree)
        subprocess.run(["cmake", "-S", tree, "-B", folder, "-G", "Ninja",
                        "-D", "CMAKE_BUILD_TYPE=RelWithDebInfo"], check=True, stdout=subprocess.DEVNULL)
    failures, passed = 0, set()
    for bug in bugs:
        wrong = unfit(source, bug)
        if not wrong and not options.check:
            wrong = put_back(bug, source, tree, folder, options.jobs, passed)
        if wrong:
            failures += 1
            print(f"  {bug['name']}: {wrong}\n    {sys.argv[0]} {options.source} --only '{bug['name']}'",
                  flush=True)
        elif not options.check:
            print(f"  {bug['name']}: noticed", flush=True)
    print(f"put_back: {len(bugs)} tries, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
