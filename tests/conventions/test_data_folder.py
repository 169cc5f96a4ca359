"""Data that is not in the tree: one program says where it lies, and everything else asks that one."""

import os
import subprocess
import tempfile
import unittest

import project

DEFAULT = "shared/" + "data"


class DataFolder(unittest.TestCase):
    def test_one_place_has_the_default(self):
        texts = [p for top in project.HAND_WRITTEN
                 for p in project.files(top, project.SOURCE_SUFFIXES | {"", ".py", ".sh", ".txt", ".cmake"})
                 if not {".cache", "corpus", "__pycache__"} & set(p.parts)]
        have = [project.name(p) for p in texts if DEFAULT.encode() in p.read_bytes()]
        self.assertEqual(have, ["tools/data_folder"])

    def asked(self, folder, *name):
        return subprocess.run([project.ROOT / "tools/data_folder", *name], text=True, capture_output=True,
                              env={**os.environ, "ALOFT_DATA": folder})

    def test_the_variable_is_followed_and_named(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.asked(folder).stdout, folder + "\n")
            missing = self.asked(folder, "digits.csv")
            self.assertEqual((missing.returncode, missing.stdout), (77, ""))
            self.assertRegex(missing.stderr, f"^skipped: digits.csv is not in {folder}: ALOFT_DATA names a "
                                             "folder with .*digits.csv")
            (project.Path(folder) / "digits.csv").write_text("1,2\n")
            self.assertEqual(self.asked(folder, "digits.csv").stdout, f"{folder}/digits.csv\n")
        self.assertTrue(self.asked("").stdout.endswith(DEFAULT + "\n"))


if __name__ == "__main__":
    unittest.main()
