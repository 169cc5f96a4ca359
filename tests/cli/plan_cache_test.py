"""A second start takes the compiled programs of the first: nothing but times tells them apart."""
import json
import os
import re
import resource
import subprocess
import unittest

from program import ALOFT, ProgramTest, main, report_data, without_clocks


def without_times(value):
    """A record without what the clock or a random number gives."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items()
                if not re.search(r"seconds|_s$|_ms$|time|started|ended|at$|per_s|rss|load|out|name|^run$", k)}
    return [without_times(v) for v in value] if isinstance(value, list) else value


class PlanCache(ProgramTest):
    def setUp(self):
        self.plans = self.folder / f"plans-{self._testMethodName}"
        self.environment = {**self.environment, "ALOFT_PLAN_CACHE": str(self.plans)}

    def aloft(self, *arguments, **environment):
        done = subprocess.run([ALOFT, *map(str, arguments)], cwd=self.folder, capture_output=True,
                              env={**self.environment, **environment}, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def entries(self):
        return sorted(p.name for p in self.plans.iterdir()) if self.plans.exists() else []

    def train(self, out, **environment):
        self.aloft("train", "tiny.toml", "--out", out, **environment)
        return json.loads((self.folder / out / "run.json").read_text())

    def weights(self, out):
        return (self.folder / out / "checkpoints" / "step-000004" / "model.safetensors").read_bytes()

    def test_a_second_run_is_equal(self):
        first = self.train("first")
        kept = self.entries()
        self.assertTrue(kept)
        second = self.train("second")
        self.assertEqual(self.entries(), kept)
        off = self.train("off", ALOFT_PLAN_CACHE="off")
        shown = without_clocks(report_data(self.folder / "first"))
        for key in ("precision_decisions", "memory", "signature", "result"):
            self.assertTrue(shown["run"][key], key)
        self.assertEqual(len(shown["curves"]["loss"]), 4)
        for other, name in ((second, "second"), (off, "off")):
            self.assertEqual(without_times(other), without_times(first))
            self.assertEqual(other["precision_decisions"], first["precision_decisions"])
            self.assertEqual(other["signature"], first["signature"])
            self.assertEqual(self.weights(name), self.weights("first"))
            self.assertEqual(without_clocks(report_data(self.folder / name)), shown)

    def test_explain_says_the_same(self):
        for subject in ("precision", "plan", "graph", "kernels"):
            text = self.aloft("explain", subject, "tiny.toml")
            self.assertEqual(self.aloft("explain", subject, "tiny.toml"), text)
            self.assertEqual(self.aloft("explain", subject, "tiny.toml", ALOFT_PLAN_CACHE="off"), text)
        # Times of passes are those of when they ran.
        said = self.aloft("explain", "graph", "tiny.toml", "--json")
        self.assertEqual(self.aloft("explain", "graph", "tiny.toml", "--json"), said)

    def test_another_instruction_set_has_its_own(self):
        before = len(self.start_and_count())
        sets = {c["check"]: c["saw"] for c in json.loads(self.aloft("doctor", "--json"))}
        if "avx512" not in sets["instruction sets"]:
            self.skipTest("this processor has no more than avx2")
        self.assertEqual(len(self.start_and_count(ALOFT_MAX_ISA="avx2")), 2 * before)
        self.assertEqual(len(self.start_and_count(ALOFT_MAX_ISA="avx2")), 2 * before)

    def start_and_count(self, **environment):
        self.aloft("explain", "plan", "tiny.toml", **environment)
        return self.entries()

    def test_it_lies_in_the_usual_place(self):
        home = self.folder / "home"
        environment = {k: v for k, v in self.environment.items()
                       if k not in ("ALOFT_PLAN_CACHE", "XDG_CACHE_HOME")}
        subprocess.run([ALOFT, "explain", "plan", "tiny.toml"], cwd=self.folder, check=True,
                       capture_output=True, env={**environment, "HOME": str(home)}, timeout=300)
        self.assertTrue(list((home / ".cache" / "aloft" / "plans").glob("*.plan")))

    def test_two_processes_at_once(self):
        for _ in range(3):
            for entry in self.entries():
                (self.plans / entry).unlink()
            runs = [subprocess.Popen([ALOFT, "explain", "plan", "tiny.toml"], cwd=self.folder,
                                     env=self.environment, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE) for _ in range(3)]
            said = [run.communicate(timeout=300)[0] for run in runs]
            self.assertEqual([run.returncode for run in runs], [0, 0, 0])
            self.assertEqual(len(set(said)), 1)
            self.assertTrue(all(name.endswith(".plan") for name in self.entries()), self.entries())

    def test_a_folder_that_takes_nothing_is_no_failure(self):
        text = self.aloft("explain", "plan", "tiny.toml")
        self.assertEqual(self.aloft("explain", "plan", "tiny.toml", ALOFT_PLAN_CACHE="/proc/plans"), text)
        for entry in self.entries():
            (self.plans / entry).unlink()
        full = subprocess.run(
            [ALOFT, "explain", "plan", "tiny.toml"], cwd=self.folder, env=self.environment, timeout=300,
            capture_output=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        self.assertEqual((full.returncode, full.stdout.decode()), (0, text), full.stderr.decode())
        self.assertEqual(self.entries(), [])  # nothing half written, either

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_without_rights_is_no_failure(self):
        self.plans.mkdir(mode=0o500)
        text = self.aloft("explain", "plan", "tiny.toml")
        self.assertEqual(self.aloft("explain", "plan", "tiny.toml"), text)
        self.assertEqual(self.entries(), [])


if __name__ == "__main__":
    main()
