"""docs/optimizers.md beside the records that it is made from."""
import subprocess
import sys
import unittest

from program import ALOFT, ROOT, main


class OptimizersPage(unittest.TestCase):
    def test_it_says_what_the_records_say(self):
        run = subprocess.run([sys.executable, "-B", ROOT / "tools" / "optimizers_page", ALOFT, "--check"],
                             capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))


if __name__ == "__main__":
    main()
