"""How far `probe run` and `probe redo` are, on a terminal, and what they leave where a signal ends them."""
import os
import pty
import re
import signal
import subprocess
import time

from probe_dumps import ProbeTest
from program import ALOFT, TINY, main

MANY = 100000


class Watch(ProbeTest):
    RECIPE = TINY.replace("O2:bf16", "O0")  # which no machine is warned of

    def ended_by(self, number, is_ready, *words):
        """Exit status and stderr of a program that gets the signal when it is ready."""
        with subprocess.Popen([ALOFT, *map(str, words)], cwd=self.folder, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            while child.poll() is None and not is_ready():
                time.sleep(0.01)
            child.send_signal(number)
            out, talk = child.communicate(timeout=200)
        return child.returncode, out.decode(), talk.decode()

    def ended_at(self, pattern, *words):
        """The same on a terminal, once it shows the pattern; what the terminal shows."""
        ours, its = pty.openpty()
        child = subprocess.Popen([ALOFT, *map(str, words)], cwd=self.folder, env=self.environment,
                                 stdout=subprocess.DEVNULL, stderr=its)
        os.close(its)
        shown, is_told = b"", False
        while True:
            try:
                shown += os.read(ours, 1 << 16)
            except OSError:  # it has ended
                break
            if not is_told and re.search(pattern, shown):
                is_told = True
                child.send_signal(signal.SIGINT)
        os.close(ours)
        return child.wait(), shown.decode().replace("\r\n", "\n")

    def dumped(self, out):
        return len(list((self.folder / out).glob("step*/rank/dump.json")))

    def test_a_terminal_shows_how_far_it_is(self):
        words = ["probe", "run", "tiny.toml", "--steps", 30]
        shown = self.on_terminal(*words, "--out", "seen", stream="stderr").decode()
        self.assertRegex(shown, r"\rstep 30/30  loss ")
        self.assertEqual(self.on_terminal(*words, "--out", "unseen", "--quiet", stream="stderr"), b"")
        self.assertEqual(self.aloft(*words, "--out", "piped").stderr, b"")
        self.assertEqual(self.dump("seen", 29), self.dump("unseen", 29))
        shown = self.on_terminal("probe", "run", "tiny.toml", "--steps", 3, "--set", "train.steps=200", "--out", "first",
                                 stream="stderr").decode()
        self.assertRegex(shown, r"\rstep 3/3  loss ")

    def test_redo_shows_how_far_it_is(self):
        self.aloft("train", "tiny.toml", "--out", "run", "--steps", 20)
        words = ["probe", "redo", "run", "--step", 19]
        shown = self.on_terminal(*words, stream="stderr").decode()
        self.assertIn("step 0/19  opening the run", shown)
        self.assertRegex(shown, r"repeat \d/3  of step 19")
        self.assertEqual(self.on_terminal(*words, "--quiet", stream="stderr"), b"")
        self.assertEqual(self.aloft(*words).stderr, b"")

    def test_a_signal_leaves_whole_dumps_and_says_how_many(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            out = f"ended-by-{number.name}"
            code, said, talk = self.ended_by(number, lambda: self.dumped(out) >= 3, "probe", "run", "tiny.toml",
                                             "--out", out, "--steps", MANY)
            self.assertEqual(code, 130, talk)
            made = self.dumped(out)
            self.assertGreaterEqual(made, 3)
            self.assertEqual(talk, f"interrupted by {number.name}: {made} of {MANY:,} steps were made; the dump of "
                                   f"{made} steps in {out} is whole\n")
            self.assertIn(f"{made} steps; what they held is in {out}", said)
            self.assertIn("loss", self.dump(out, made - 1)["training"])

    def test_ctrl_c_is_answered_at_once(self):
        code, shown = self.ended_at(rb"step \d+/\d+  loss", "probe", "run", "tiny.toml", "--out", "answered", "--steps",
                                    MANY)
        self.assertEqual(code, 130, shown)
        self.assertRegex(shown, r"\nSIGINT: finishing step \d+, then saving; Ctrl-C again ends now")
        self.assertIn("interrupted by SIGINT: ", shown)

    def test_redo_says_how_far_it_came(self):
        self.aloft("train", "tiny.toml", "--out", "long", "--steps", 4000, "--quiet")
        before = sorted(p.stat().st_mtime_ns for p in (self.folder / "long").rglob("*"))
        code, shown = self.ended_at(rb"step [1-9][\d,]*/3,999  from", "probe", "redo", "long", "--step", 3999)
        self.assertEqual(code, 130, shown)
        self.assertIn("\nSIGINT: coming to an end\n", shown)
        self.assertRegex(shown, r"interrupted by SIGINT: the run was made again from behind step 0 to behind step "
                                r"\d+ of 3999; their numbers are those that the run recorded; nothing was written")
        self.assertEqual(sorted(p.stat().st_mtime_ns for p in (self.folder / "long").rglob("*")), before)


if __name__ == "__main__":
    main()
