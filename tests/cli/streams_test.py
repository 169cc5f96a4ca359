"""Streams that are closed or full, paths that the system refuses, calls that fail: every end is an
exit status with a message, never a signal. Usage: streams_test.py ALOFT REPOSITORY (the
standard library only).
"""

import json
import os
import re
import resource
import shutil
import subprocess

from program import ALOFT, TINY, ProgramTest, main


class Streams(ProgramTest):
    RECIPE = TINY.replace("validation = 0.2", 'cache = "cache"').replace("tokens = 0", "tokens = 4")
    ENVIRONMENT = {"GOMP_SPINCOUNT": "1000"}  # no second start of the program for its spin

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        assert cls.run_aloft(cls, "train", "tiny.toml", "--out", "run", "--quiet").returncode == 0

    def run_aloft(self, *arguments, before=(), **more):
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        environment = {**self.environment, **more.pop("environment", {})}
        return subprocess.run([*before, ALOFT, *map(str, arguments)], cwd=self.folder, text=True,
                              errors="replace", env=environment, timeout=120, **more)

    def fresh(self):
        """A run directory that is not there."""
        shutil.rmtree(self.folder / "new", ignore_errors=True)
        return ["train", "tiny.toml", "--out", "new"]

    def test_results_that_do_not_arrive_are_4(self):
        for arguments in (["--help"], ["--version"], ["train", "--help"], [], ["ops"], ["recipes"],
                          ["ops", "--json"], ["doctor"], ["train", "tiny.toml", "--print-config"],
                          self.fresh(), ["data", "info", "run"], ["explain", "plan", "tiny.toml"],
                          ["report", "run"], ["generate", "run", "--prompt", "a", "--tokens", "3"]):
            with open("/dev/full", "w") as full:
                done = self.run_aloft(*arguments, stdout=full)
            self.assertEqual(done.returncode, 4, (arguments, done.stderr))
            self.assertIn("E0607", done.stderr, arguments)
            self.assertIn("No space left", done.stderr, arguments)

    def test_results_that_nobody_reads_are_4(self):
        """Neither a signal nor silence: the reader of a pipe that leaves, and no stdout at all."""
        for arguments in (["--help"], ["ops"], ["ops", "--json"], self.fresh(), ["data", "info", "run"],
                          ["eval", "run", "--data", "text.txt"],
                          ["generate", "run", "--prompt", "a", "--tokens", "3"],
                          ["generate", "run", "--prompt", "a", "--tokens", "3", "--json"]):
            reader, writer = os.pipe()
            os.close(reader)
            gone = self.run_aloft(*arguments, stdout=writer)
            os.close(writer)
            shutil.rmtree(self.folder / "new", ignore_errors=True)  # which the first has trained
            closed = self.run_aloft(*arguments, stdout=None, preexec_fn=lambda: os.close(1))
            for done, why in ((gone, "Broken pipe"), (closed, "Bad file descriptor")):
                self.assertEqual(done.returncode, 4, (arguments, done.stderr))
                self.assertIn("E0607", done.stderr, arguments)
                self.assertIn(why, done.stderr, arguments)

    def test_talk_that_does_not_arrive_changes_nothing(self):
        for arguments, status in (([*self.fresh()], 0), (["ops"], 0), (["tran"], 2),
                                  (["data", "info", "absent"], 3)):
            with open("/dev/full", "w") as full:
                self.assertEqual(self.run_aloft(*arguments, stderr=full).returncode, status)

    def test_closed_streams_lend_their_numbers_to_no_file(self):
        def close():
            for descriptor in (0, 1, 2):
                os.close(descriptor)
        done = self.run_aloft(*self.fresh(), preexec_fn=close, stdin=None, stdout=None, stderr=None)
        self.assertEqual(done.returncode, 4)  # the run is whole; where it lies was not to be said
        lines = (self.folder / "new" / "metrics.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(line)["step"] for line in lines if "lr" in line], [1, 2, 3, 4])
        for path in (self.folder / "new").rglob("*"):
            if path.is_file() and path.suffix in (".jsonl", ".toml", ".txt"):
                self.assertNotIn("run directory", path.read_text(errors="replace"), path)

    def test_without_words_it_shows_its_help(self):
        done = self.run_aloft()
        self.assertEqual(done.returncode, 2)
        self.assertTrue(done.stderr.startswith("error E0700: there is no verb"), done.stderr)
        self.assertIn("train", done.stdout)

    def test_paths_that_the_system_refuses_are_4(self):
        os.symlink("b", self.folder / "a")
        os.symlink("a", self.folder / "b")
        for path in ("a", "n" * 5000, "a/b/c"):
            for arguments in (["data", "info", path], ["report", path], ["train", path + ".toml"],
                              ["generate", path, "--prompt", "x"],
                              ["train", "tiny.toml", "--out", path],
                              ["train", "tiny.toml", "--out", "p", "--set", f"data.text={path}"]):
                if path.startswith("a") and path.endswith(".toml"):
                    continue
                done = self.run_aloft(*arguments)
                # "a.toml" is not there at all; the others cannot be looked at.
                expected = (2,) if arguments[-1] in ("a.toml", "a/b/c.toml") else (4,)
                if arguments[-1] == "a/b/c.toml":
                    expected = (4,)
                self.assertIn(done.returncode, expected, (arguments, done.stderr))
        name = os.fsdecode(b"r\xff\xfe.toml")
        (self.folder / name).write_text(self.RECIPE)
        done = self.run_aloft("train", name, "--out", os.fsdecode(b"o\xff"), "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_limit_on_the_size_of_files_is_4(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        done = self.run_aloft(*self.fresh(), preexec_fn=limited)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^error E0603: (.|\n)*File too large")

    def test_results_in_json_name_paths_of_any_bytes(self):
        odd = os.fsdecode(b"r\xff")
        (self.folder / odd).mkdir()
        recipe = f"{odd}/{odd}.toml"
        (self.folder / recipe).write_text(self.RECIPE.replace('["text.txt"]', '["../text.txt"]'))
        header = b'{"tokens":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]}}'
        (self.folder / "two.safetensors").write_bytes(
            len(header).to_bytes(8, "little") + header + bytes([65, 0, 0, 0, 66, 0, 0, 0]))
        for arguments in (["recipes", odd, "--json"],
                          ["score", "run", "--tokens", "two.safetensors", "--out", odd + ".s", "--json"],
                          ["bench", "step", "--model", recipe, "--steps", 2, "--no-limit", "--json"]):
            done = self.run_aloft(*arguments)
            self.assertEqual(done.returncode, 0, (arguments, done.stderr))
            self.assertIn("r\ufffd", json.dumps(json.loads(done.stdout), ensure_ascii=False))

    def test_results_and_errors_in_one_file_are_not_torn(self):
        with open(self.folder / "both", "ab") as both:
            subprocess.run([ALOFT, "probe", "run", "tiny.toml", "--out", "torn", "--task", "overflow", "--steps", "24",
                            "--set", 'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}',
                            "--set", "optimizer.lr=3000"],
                           cwd=self.folder, env=self.environment, stdout=both, stderr=both, timeout=300)
        text = (self.folder / "both").read_text()
        before, error = text.split("error E0884", 1)
        self.assertGreater(len(before), 1024)  # what was found is said before the error
        self.assertTrue(before.endswith("\n"), before[-200:])
        self.assertTrue(all(line.startswith("  ") for line in error.splitlines()[1:]), error)

    def test_threads(self):
        for arguments in (["generate", "run", "--prompt", "a"], ["train", "tiny.toml"],
                          ["score", "run", "--tokens", "t", "--out", "o"], ["bench", "step"]):
            done = self.run_aloft(*arguments, "--threads", 100000)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
        done = self.run_aloft("doctor", environment={"OMP_NUM_THREADS": "100000"})
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_no_way_of_failing_is_a_signal(self):
        """Every kind of call that a run makes fails once, early and late."""
        if not shutil.which("strace") or self.run_aloft("--version", before=["strace", "-qq", "-o", "/dev/null"]).returncode:
            self.skipTest("strace is missing or may not trace here")
        log = self.folder / "calls"
        self.run_aloft(*self.fresh(), before=["strace", "-f", "-qq", "-o", str(log)])
        counts = {}
        begun = False
        for line in log.read_text(errors="replace").splitlines():
            call = re.match(r"\d+ +(\w+)\(", line)
            begun = begun or "tiny.toml" in line and "openat" in line  # the libraries are loaded
            if call:
                total, first = counts.get(call.group(1), (0, 0))
                counts[call.group(1)] = (total + 1, first or (total + 1 if begun else 0))
        faults = [("openat", "EMFILE"), ("openat", "EACCES"), ("openat", "EIO"), ("write", "ENOSPC"),
                  ("write", "EIO"), ("read", "EIO"), ("pread64", "EIO"), ("fsync", "EIO"),
                  ("rename", "EACCES"), ("mkdir", "EACCES"), ("newfstatat", "EIO"), ("mmap", "ENOMEM"),
                  ("clone3", "EAGAIN"), ("getdents64", "EIO")]
        bad, tries = [], 0
        for call, error in faults:
            total, first = counts.get(call, (0, 0))
            if not first:
                continue
            for number in sorted({first, first + 1, (first + total) // 2, total}):
                done = self.run_aloft(*self.fresh(), before=[
                    "strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}",
                    "-e", f"inject={call}:error={error}:when={number}"])
                tries += 1
                if done.returncode not in (0, 4):
                    bad.append(f"{call} {error} at {number}: {done.returncode} {done.stderr[-300:]}")
                record = self.folder / "new" / "run.json"
                noted = json.loads(record.read_text()).get("error") if record.exists() else None
                if noted and "error E" in done.stderr and noted["code"] not in done.stderr:
                    bad.append(f"{call} {error} at {number}: run.json notes {noted['code']}, the "
                               f"program says {done.stderr[-300:]}")
        print(f"one failing call: {tries} tries, {len(bad)} failures")
        self.assertFalse(bad, "\n".join(bad))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
