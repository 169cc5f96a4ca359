"""The host's doors to tensor memory, and whose business OpenMP is: what CONTRIBUTING.md's "add a back
end" counts on."""

import re
import unittest

import project

# what, pattern, folders below src that may, what to use
RULES = [
    # Those that hand it to kernels.
    ("takes the address of a tensor's memory", r"[.>]address\(\)",
     ("runtime/", "backends/", "exec/executor.cpp", "exec/launch.cpp"), "read() and write() of runtime/buffer.h"),
    ("follows the address of a tensor's memory", r"_cast<[^<>]*>\([^;]*[.>]address\(\)",
     ("runtime/", "backends/"), "read() and write() of runtime/buffer.h"),
    ("maps a device's memory", r"[.>]map\(",
     ("runtime/", "backends/"), "read() and write() of runtime/buffer.h"),
    ("speaks to OpenMP", r"\bomp_\w+|#\s*pragma\s+omp\b|<omp\.h>|\b_OPENMP\b",
     ("backends/cpu/",), "host_threads() of runtime/threads.h"),
    ("names a back end", r"\bcpu_(?:backend|device)\s*\(|\bsim::",
     ("backends/", "cli/"), "current_device() of runtime/current_device.h, open_device() of backends/catalog.h"),
]

# Functions that a header of these folders declares and that give the address of elements.
RAW = re.compile(r"^\s*(?:virtual\s+|static\s+|inline\s+)*(?:const\s+)?(?:(?:void|float|double|"
                 r"T|unsigned char|std::byte|std::u?int\d+_t)\s*(?:const\s*)?\*|std::span<(?:const )?(?:float|double|T|"
                 r"std::byte|std::u?int\d+_t)>)\s*(\w+)\s*\(", re.M)
RAW_FOLDERS = ("frontend/", "exec/executor.h", "exec/launch.h", "graph/", "models/", "nn/", "optim/", "recipe/", "checkpoint/", "run/", "infer/",
               "train/", "types/")


class Doors(unittest.TestCase):
    def test_memory_and_threads_are_reached_by_their_doors(self):
        problems = []
        for path in project.files("src"):
            inside = path.relative_to(project.ROOT / "src").as_posix()
            source = project.code(path)
            for what, pattern, allowed, instead in RULES:
                if inside.startswith(allowed):
                    continue
                for match in re.finditer(pattern, source):
                    line = project.line_of(source, match.start())
                    problems.append(f"{project.name(path)}:{line}: {what}: use {instead}")
        self.assertFalse(problems, project.report(problems))

    def test_no_function_hands_out_a_raw_pointer_to_elements(self):
        problems = []
        for path in project.files("src"):
            inside = path.relative_to(project.ROOT / "src").as_posix()
            if path.suffix != ".h" or not inside.startswith(RAW_FOLDERS):
                continue
            source = project.code(path)
            for match in RAW.finditer(source):
                line = project.line_of(source, match.start(1))
                problems.append(f"{project.name(path)}:{line}: {match.group(1)}() gives a raw pointer: "
                                "give a HostRead, a HostWrite or a port")
        self.assertFalse(problems, project.report(problems))

    def test_the_rules_find_what_they_are_for(self):
        found = [re.search(pattern, text) for (_, pattern, _, _), text in zip(RULES, (
            "step.in.push_back(b.address());", "*static_cast<float*>(b.address()) = 1;", "device.map(block);",
            "#pragma omp parallel for", "use_device(cpu_device());"))]
        self.assertTrue(all(found), found)
        self.assertTrue(RAW.search("  const float* output(std::string_view name) const;"))
        self.assertTrue(RAW.search("  T* input(int n) const {"))
        self.assertTrue(RAW.search("  unsigned char* bytes();"))
        self.assertTrue(RAW.search("  std::span<float> values(const Variable& v);"))
        self.assertFalse(RAW.search("  void run(const Buffer& b);"))


if __name__ == "__main__":
    unittest.main()
