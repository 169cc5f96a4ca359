#include "ops/compare.h"

#include "ops/op.h"
#include "ops/promote.h"

namespace aloft {
namespace {

struct Row {
  const char* name;
  const char* doc;
  bool (*eval)(double, double);
  bool (*whole)(std::int64_t, std::int64_t);
  const char* onnx;
};

// The same comparison of doubles and of integers.
#define ROW(name, sign, onnx)                                           \
  {                                                                     \
    name, "a " #sign " b", [](double a, double b) { return a sign b; }, \
        [](std::int64_t a, std::int64_t b) { return a sign b; }, onnx   \
  }
const Row kRows[] = {
    ROW("equal", ==, "Equal"),    ROW("not_equal", !=, ""),
    ROW("less", <, "Less"),       ROW("less_equal", <=, "LessOrEqual"),
    ROW("greater", >, "Greater"), ROW("greater_equal", >=, "GreaterOrEqual"),
};
#undef ROW

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
      .meaning = Eval<A>([f = row.eval, whole = row.whole](const A&, EvalCall& c) {
        const BroadcastIndex a(c.in[0].shape, c.out[0].shape), b(c.in[1].shape, c.out[0].shape);
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i) {
          const HostNumber &x = c.in[0][a(i)], &y = c.in[1][b(i)];
          c.out[0][i] = is_integer(c.in[0].dtype) ? whole(x.whole(), y.whole()) : f(x, y);
        }
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
            for (const DType t : {DType::I64, DType::I32, DType::I8, DType::U8})
              s.add(A{}, {whole_numbers({5, 67}, t), whole_numbers({67}, t)}, "integers");
          },
  });
}

}  // namespace

std::vector<OpDef> compare_ops() {
  std::vector<OpDef> all;
  for (const Row& row : kRows) all.push_back(compare_op(row));
  return all;
}

Tensor compared(Tensor (*compare)(Operand, Operand), const Operand& a, std::int64_t b) {
  if (is_low(a.tensor.dtype())) return compared(compare, a, static_cast<double>(b));
  const Operand wide = reaches(a.tensor.dtype(), b) ? a : as_type(a, DType::I64);
  return compare(wide, number_like(wide.tensor, b));
}
Tensor compared(Tensor (*compare)(Operand, Operand), const Operand& a, double b) {
  const Operand wide = holds(a.tensor.dtype(), b) ? a : as_type(a, DType::F32);
  return compare(wide, number_like(wide.tensor, b));
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
