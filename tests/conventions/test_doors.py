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

# Functions that a header declares and that give the address of elements.
ELEMENT = (r"(?:void|float|double|bool|T|(?:std::)?byte|(?:std::)?u?int\d+_t|(?:un)?signed char|"
           r"(?:unsigned |signed )?(?:int|long long|long|short)|unsigned|(?:scalar::)?B?[fF]16)")
RAW = re.compile(r"^\s*(?:(?:virtual|static|inline|constexpr|template\s*<[^<>]*>|\[\[\w+\]\])\s+)*(?:"
                 r"(?:const\s+)?" + ELEMENT + r"(?:\s+const)?\s*\*\s*(?:const\s+)?|"
                 r"std::span<\s*(?:const\s+)?" + ELEMENT + r"(?:\s+const)?\s*>\s*)(\w+)\s*\(", re.M)
# All folders are held to it but for those below that hold no tensors, and those that run kernels.
RAW_ALLOWED = ("runtime/", "backends/", "base/", "scalar/", "exec/memory_check.h",
               "plan/skyline.h",          # offsets
               "data/token_source.h")     # a file's bytes


def raw_pointers(inside, source):
    """(position, function) of those that the header `inside` src gives though it may not."""
    if not inside.endswith(".h") or inside.startswith(RAW_ALLOWED):
        return []
    return [(match.start(1), match.group(1)) for match in RAW.finditer(source)]


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
            source = project.code(path)
            for at, function in raw_pointers(path.relative_to(project.ROOT / "src").as_posix(), source):
                line = project.line_of(source, at)
                problems.append(f"{project.name(path)}:{line}: {function}() gives a raw pointer: "
                                "give a HostRead, a HostWrite or a port")
        self.assertFalse(problems, project.report(problems))

    def test_the_rules_find_what_they_are_for(self):
        found = [re.search(pattern, text) for (_, pattern, _, _), text in zip(RULES, (
            "step.in.push_back(b.address());", "*static_cast<float*>(b.address()) = 1;", "device.map(block);",
            "#pragma omp parallel for", "use_device(cpu_device());"))]
        self.assertTrue(all(found), found)
        for text in ("const float* output(std::string_view name) const;", "  T* input(int n) const {",
                     "  unsigned char* bytes();", "  std::span<float> values(const Variable& v);", "float* give();",
                     "scalar::Bf16* low();", "Bf16 *low();", "const F16* half() const;", "int* ids();", "double* exact();",
                     "static long long* count();", "template <class T> T* at(int n);", "std::int32_t const* ids();",
                     "[[nodiscard]] virtual const double* exact() const;", "std::span<const scalar::Bf16> low();",
                     "std::byte* const place();"):
            self.assertTrue(RAW.search(text), text)
        for text in ("  void run(const Buffer& b);", "  const char* name();", "  Device* device();",
                     "  std::span<const Buffer> parts();", "  int count();", "  double total(const float* x);"):
            self.assertFalse(RAW.search(text), text)

    def test_a_folder_is_held_to_it_unless_it_is_allowed(self):
        folders = sorted(p.name for p in (project.ROOT / "src").iterdir() if p.is_dir())
        free = {name for name in folders if not raw_pointers(f"{name}/new.h", "float* give();")}
        self.assertEqual(free, {"backends", "base", "runtime", "scalar"})
        self.assertTrue(raw_pointers("tasks/task.h", "float* give();"))
        self.assertTrue(raw_pointers("observe/report/report.h", "int* give();"))
        missing = [path for path in RAW_ALLOWED if not (project.ROOT / "src" / path).exists()]
        self.assertFalse(missing, missing)


if __name__ == "__main__":
    unittest.main()
