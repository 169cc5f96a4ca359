#include "ops/compare.h"

#include "ops/cast.h"
#include "ops/op.h"

namespace aloft {
namespace {

struct Row {
  const char* name;
  const char* doc;
  bool (*eval)(double, double);
  const char* onnx;
};

const Row kRows[] = {
    {"equal", "a == b", [](double a, double b) { return a == b; }, "Equal"},
    {"not_equal", "a != b", [](double a, double b) { return a != b; }, ""},
    {"less", "a < b", [](double a, double b) { return a < b; }, "Less"},
    {"less_equal", "a <= b", [](double a, double b) { return a <= b; }, "LessOrEqual"},
    {"greater", "a > b", [](double a, double b) { return a > b; }, "Greater"},
    {"greater_equal", "a >= b", [](double a, double b) { return a >= b; }, "GreaterOrEqual"},
};

OpDef compare_op(const Row& row) {
  using A = NoAttrs;
  return define<A>({
      .name = row.name,
      .doc = row.doc,
      .infer =
          [](const A&, Infer& c) {
            c.need_count(2);
            c.need_same_dtype(0, 1);
            c.out(DType::Bool, c.broadcast(c.shape(0), c.shape(1)));
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([f = row.eval](const A&, EvalCall& c) {
        const BroadcastIndex a(c.in[0].shape, c.out[0].shape), b(c.in[1].shape, c.out[0].shape);
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i)
          c.out[0][i] = f(c.in[0][a(i)], c.in[1][b(i)]);
      }),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "..., ... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{row.onnx, 16},
      .samples =
          [](Samples& s) {
            s.add(A{}, {ids({3, 17}, 0, 4), ids({3, 17}, 0, 4)});
            s.add(A{}, {ids({4097}, 0, 4, DType::I64), ids({1}, 0, 4, DType::I64)});
            s.add(A{}, {{{2, 3, 5}}, {{3, 1}}});
            s.add(A{}, {{{0}}, {{0}}});
            s.add(A{}, {{{64}, Fill::Special}, {{64}, Fill::Special}}, "special values");
          },
  });
}

}  // namespace

std::vector<OpDef> compare_ops() {
  std::vector<OpDef> all;
  for (const Row& row : kRows) all.push_back(compare_op(row));
  return all;
}

#define COMPARE(name)                   \
  Tensor name(Operand a, Operand b) {   \
    meet(a, b);                         \
    return emit_one(#name, {}, {a, b}); \
  }
// clang-format off
COMPARE(equal) COMPARE(not_equal) COMPARE(less) COMPARE(less_equal) COMPARE(greater)
COMPARE(greater_equal)
// clang-format on
#undef COMPARE

}  // namespace aloft
