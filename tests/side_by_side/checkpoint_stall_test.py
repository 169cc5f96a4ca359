"""tools/checkpoint_stall with a program that only pretends: its figures, and what they say they are of."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Steps of a second; those around a save take a tenth longer, and one of them waits for 5 ms.
PRETENDER = """#!{python}
import json, pathlib, sys
if "doctor" in sys.argv:
    print(json.dumps([{{"check": "oneDNN", "saw": "9.9"}}]))
    sys.exit()
out = pathlib.Path("run")
out.mkdir()
time = 0
with (out / "metrics.jsonl").open("w") as file:
    for step in range(1, 56):
        around = any(save - 5 < step <= save + 5 for save in (20, 40))
        waited = 0.005 if step in (21, 41) else 0
        time += (1.1 if around else 1.0) - waited
        print(json.dumps({{"step": step, "loss": 1, "time_s": time, "saving_s": waited}}), file=file)
"""


class Stall(unittest.TestCase):
    def test_figures_say_what_they_were_measured_on(self):
        with tempfile.TemporaryDirectory() as folder:
            aloft = pathlib.Path(folder) / "aloft"
            aloft.write_text(PRETENDER.format(python=sys.executable))
            aloft.chmod(0o755)
            done = subprocess.run([sys.executable, "-B", ROOT / "tools" / "checkpoint_stall", "--aloft", aloft,
                                   "--saves", "2", "--threads", "2", "--set", "model.layers=2", "--json"],
                                  stdout=subprocess.PIPE, text=True, timeout=100, check=True)
        got = json.loads(done.stdout)
        self.assertEqual([round(w, 6) for w in got["waits_ms"]], [5, 5])
        self.assertEqual([round(p, 6) for p in got["longer_percents"]], [10, 10])
        self.assertRegex(got["revision"], r"^[0-9a-f]{12}\+?\??$")
        self.assertTrue(got["processor"])
        self.assertEqual((got["oneDNN"], got["threads"], got["set"]), ("9.9", 2, ["model.layers=2"]))


if __name__ == "__main__":
    unittest.main()
