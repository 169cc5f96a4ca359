"""tools/api_index reads every public header: none is missing, none is empty, nothing is misread."""

import importlib.machinery
import importlib.util
import re
import unittest

import project


def tool():
    loader = importlib.machinery.SourceFileLoader("api_index", str(project.ROOT / "tools/api_index"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("api_index", loader))
    loader.exec_module(module)
    return module


class ApiIndex(unittest.TestCase):
    def test_every_public_header_with_its_sentence(self):
        page = tool().page()
        public = project.text(project.ROOT / "include/aloft/aloft.h")
        for header in re.findall(r'^#include "([^"]+)"', public, re.M):
            section = re.search(rf"^## {re.escape(header)}\n\n(.+)$", page, re.M)
            self.assertTrue(section and len(section.group(1)) > 8, header)

    def test_what_users_call(self):
        page = tool().page()
        for call in ("compile(F f", "minimize(const Tensor& loss", "manual_seed(std::uint64_t seed)",
                     "`class Linear`", "`struct Gpt2Config`", "cross_entropy(", "`class Tensor`",
                     "`struct AdamW`", "`Safetensors Safetensors::open(const Path& path)`",
                     "`class Checkpoints`", "mse_loss(Operand x",
                     "`double AdamW::beta1, beta2`", "`bool ArrayLoaderOptions::shuffle` | anew in each epoch",
                     "`const ArrayBatch* ArrayLoader::next()` | nullptr after the last epoch",
                     "`bool CompileOptions::partial_batches` | The first dimension"):
            self.assertIn(call, page, call)

    def test_declarations(self):
        read = tool().declarations("""// Head.
#pragma once
#define X(a) \\
  int a;
namespace aloft {
class Later;
namespace internal { int hidden(); }
// Adds. More of it.
// And more.
int add(int a, int b = f({1, 2}));

int lonely() { return '{'; }  // behind
// A thing, e.g. "O0" .. "O3".
struct Thing : Base { int x = 3; void f(); };
class Made {
 public:
  // Makes one. Or not.
  static Made make(int a);
  static constexpr int kMost = 3;
  Made(const Made&) = delete;
  int size() const { return size_; }  // of all
  // Two lines
  // before.
  std::map<int, int> seen = {{1, 2}}, more = {};
  template <class T> T as() const;
  struct Inner { int deep; };
  bool operator()(int x) const;

 private:
  static int hidden();
  int size_ = 0;
};
inline constexpr int kMany[] = {1, 2};
bool operator==(A a, B b);
}
""")
        self.assertEqual(read, [("aloft", "int add(int a, int b = f({1, 2}))", "Adds"),
                                ("aloft", "int lonely()", ""),
                                ("aloft", "struct Thing", 'A thing, e.g. "O0" .. "O3"'),
                                ("aloft", "int Thing::x", ""),
                                ("aloft", "void Thing::f()", ""),
                                ("aloft", "class Made", ""),
                                ("aloft", "Made Made::make(int a)", "Makes one"),
                                ("aloft", "int Made::size() const", "of all"),
                                ("aloft", "std::map<int, int> Made::seen, more", "Two lines before"),
                                ("aloft", "bool Made::operator()(int x) const", ""),
                                ("aloft", "int kMany[]", ""),
                                ("aloft", "bool operator==(A a, B b)", "")])


if __name__ == "__main__":
    unittest.main()
