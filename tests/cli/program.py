"""The built program in a folder of its own, with a small text and a recipe, in a pipe or on a terminal.

Usage of a test that imports this: NAME_test.py ALOFT REPOSITORY (the standard library only).
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from pathlib import Path

ALOFT, ROOT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()

# A shell's job in the background does not hear Ctrl-C, one under nohup no hangup, nor does what
# these start: here all do.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Sanitizers reserve more memory than any limit that a test would set.
IS_SANITIZED = any(name in ALOFT.read_bytes() for name in (b"__asan_init", b"__tsan_init"))

TINY = """# A model of a few kilobytes.
[model]
layers = 1
dim = 16
heads = 2
context = 8
[data]
text = ["text.txt"]
tokenizer = { kind = "byte" }
validation = 0.2
[precision]
level = "O2:bf16"
[train]
batch = 2
steps = 4
sample_tokens = 0
"""


def report_data(run):
    """What report.html of a run's directory shows, as its scripts read it."""
    return json.loads((run / "report.html").read_text().split('id="data">')[1].split("</script>")[0])


def without_clocks(value):
    """A report's data without what clocks, the process's memory, the folder and random numbers give."""
    if isinstance(value, dict):
        return {key: without_clocks(v) for key, v in value.items()
                if not re.search(r"_s$|^rate$|^rate_smoothed$|_rss_bytes$|^started$|^name$", key)
                and not (key == "run" and isinstance(v, str))}
    return [without_clocks(v) for v in value] if isinstance(value, list) else value


class ProgramTest(unittest.TestCase):
    RECIPE = TINY
    ENVIRONMENT = {}  # of a test's own, besides

    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.holder.name)
        (cls.folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 40)
        (cls.folder / "tiny.toml").write_text(cls.RECIPE)
        cls.environment = {**os.environ, "XDG_CACHE_HOME": str(cls.folder / "cache"),
                           "OMP_NUM_THREADS": "1", **cls.ENVIRONMENT}

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    @classmethod
    def aloft(cls, *arguments, exit_code=0):
        done = subprocess.run([ALOFT, *map(str, arguments)], cwd=cls.folder, capture_output=True,
                              env=cls.environment, timeout=300)
        if exit_code is not None and done.returncode != exit_code:
            raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    @classmethod
    def parsed(cls, *arguments):
        return [json.loads(line) for line in cls.aloft(*arguments).stdout.splitlines()]

    @classmethod
    def on_terminal(cls, *arguments, columns=80, stream="stdout", exit_code=0):
        """What a terminal shows of one stream: bytes, lines ended by a carriage return too."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: its}
        child = subprocess.Popen([ALOFT, *map(str, arguments)], cwd=cls.folder, env=cls.environment,
                                 **streams)
        shown = b""
        while True:  # the other end stays open: what is on its way when the last one closes may be lost
            has_ended = child.poll() is not None
            if select.select([ours], [], [], 0.05)[0]:
                shown += os.read(ours, 1 << 16)
            elif has_ended:
                break
        os.close(its)
        os.close(ours)
        if child.returncode != exit_code:
            raise AssertionError(f"{arguments}: {child.returncode}\n{shown}")
        return shown


def main():
    unittest.main(argv=sys.argv[:1], verbosity=2)
