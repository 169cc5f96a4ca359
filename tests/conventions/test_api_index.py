"""tools/api_index reads every public header: none is missing, every row has words, nothing is misread."""

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
                     "`double AdamW::beta1 = 0.9, beta2 = 0.999`",
                     "`bool ArrayLoaderOptions::shuffle = true` | anew in each epoch",
                     "`const ArrayBatch* ArrayLoader::next()` | nullptr after the last epoch",
                     "`bool CompileOptions::partial_batches = true` | The first dimension",
                     "Sequential& Sequential::add(Args&&... arguments)", "Compiled::operator()(const Args&... args)",
                     "`enum class LastBatch { Wrap, Keep, Drop }`"):
            self.assertIn(call, page, call)
        for inside in ("EagerEmitter", "Emitter::", "CompiledCall", "OpSpec", "ConcatAttrs"):
            self.assertNotIn(inside, page)

    def test_every_row_has_words(self):
        rows = [(path.name, row.code) for path, rows in tool().sections() for row in rows
                if not re.search(r"\w{2}|[^\w\s]", row.words)]
        self.assertFalse(rows, "no comment in the header says what these are:\n" + project.report(
            [f"{name}: {code}" for name, code in rows]))
        self.assertGreater(sum(len(rows) for _, rows in tool().sections()), 700)

    def rows(self, text):
        return [(row.scope, row.code, row.words) for row in tool().declarations(text)]

    def test_declarations(self):
        read = self.rows("""// Head.
#pragma once
#define X(a) \\
  int a;
namespace aloft {
class Later;
namespace internal { int hidden(); }
// Adds. More of it.
// And more; E0123 where it is too much. "E0124" is no error.
int add(int a, int b = f({1, 2}));

int lonely() { return '{'; }
int behind() { return '}'; }  // what it gives
// A thing, e.g. "O0" .. "O3".
struct Thing : Base { int x = 3; void f(); };
class Made {
 public:
  // Makes one. Or not.
  static Made make(int a);
  static constexpr int kMost = 3;
  Made(const Made&) = delete;
  int size() const { return size_; }  // of all
  int first() const {  // at the front,
    return 1;
  }
  // Two lines
  // before.
  std::map<int, int> seen = {{1, 2}}, more = {};
  template <class T> T as() const;
  int base() const override;
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
        self.assertEqual(read, [
            ("aloft", "int add(int a, int b = f({1, 2}))", "Adds. And more; E0123 where it is too much"),
            ("aloft", "int lonely()", ""),
            ("aloft", "int behind()", "what it gives"),
            ("aloft", "struct Thing", 'A thing, e.g. "O0" .. "O3"'),
            ("aloft", "int Thing::x = 3", ""),
            ("aloft", "void Thing::f()", ""),
            ("aloft", "class Made", ""),
            ("aloft", "Made Made::make(int a)", "Makes one"),
            ("aloft", "int Made::size() const", "of all"),
            ("aloft", "int Made::first() const", "at the front,"),
            ("aloft", "std::map<int, int> Made::seen = {{1, 2}}, more", "Two lines before"),
            ("aloft", "template <class T> T Made::as() const", ""),
            ("aloft", "bool Made::operator()(int x) const", ""),
            ("aloft", "int kMany[]", ""),
            ("aloft", "bool operator==(A a, B b)", "")])

    def test_a_comment_of_several(self):
        read = self.rows("""namespace aloft {
// Of both. E0200: too large.
int one();
int two();  // the second
int three();

int four();
// Floating.

int five();
// Inside: a part.
int six();
int seven();

int eight();  // goes on
              // below
struct Both {
  // The ends:
  int low = 0;
  int high = 1;
  // The step.
  int step = 1;
  int rest;
};
enum class Kind : int {
  A = 1,  // this
  B,
};
}
""")
        self.assertEqual([row[1:] for row in read], [
            ("int one()", "Of both. E0200: too large"), ("int two()", "the second"),
            ("int three()", "Of both. E0200: too large"), ("int four()", ""), ("int five()", ""),
            ("int eight()", "goes on below"), ("struct Both", ""), ("int Both::low = 0", "The ends"),
            ("int Both::high = 1", "The ends"), ("int Both::step = 1", "The step"), ("int Both::rest", ""),
            ("enum class Kind { A, B }", "")])

    def test_attributes_have_the_words_of_their_fields(self):
        read = tool().declarations("""namespace aloft {
// Of turn().
struct TurnAttrs {
  double angle = 0;
  static constexpr auto fields() {
    using A = TurnAttrs;
    return FieldList{field("angle", &A::angle, "in \\"degrees\\", "
                            "to the left")};
  }
};
}
""")
        self.assertEqual([(row.code, row.words, row.attrs) for row in read],
                         [("struct TurnAttrs", "Of turn()", "TurnAttrs"),
                          ("double TurnAttrs::angle = 0", 'in "degrees", to the left', "TurnAttrs")])


if __name__ == "__main__":
    unittest.main()
