"""Options that several verbs have are declared in one place (src/cli/shared_options.cpp)."""

import collections
import re
import unittest

import project

SHARED = project.ROOT / "src" / "cli" / "shared_options.cpp"


def options(path):
    """The names of the options that a source declares: "--set", and "recipe" of a place."""
    return re.findall(r'add_(?:option|flag)(?:_function<[^>]*>)?\(\s*"([\w-]+)[",]', project.code(path))


class Options(unittest.TestCase):
    def test_an_option_of_several_verbs_stands_in_one_place(self):
        shared = set(options(SHARED))
        self.assertLessEqual({"--set", "--device", "--threads", "--json", "--precision", "--mode", "recipe", "model"},
                             shared)
        self.assertEqual(len(shared), len(options(SHARED)))
        problems, means_its_own = [], {"--batch", "--out", "--steps", "path", "--tokens"}  # another thing in each verb
        declared = collections.defaultdict(list)
        for path in project.files("src/cli"):
            if path == SHARED:
                continue
            for option in options(path):
                declared[option].append(project.name(path))
        for option, places in sorted(declared.items()):
            if option in shared:
                problems.append(f"{places[0]}: {option}: ask for it as shared_options.h says")
            elif len(places) > 1 and option not in means_its_own:
                problems.append(f"{', '.join(places)}: {option}: declare it in shared_options.cpp")
        self.assertFalse(problems, project.report(problems))


if __name__ == "__main__":
    unittest.main()
