#include "ops/arg_reduce.h"

#include <cmath>

#include "ops/op.h"
#include "ops/reduce.h"

namespace aloft {
namespace {

using A = ArgReduceAttrs;

// Whether v takes the place of the best so far.
bool beats(const HostNumber& v, const HostNumber& best, bool largest, bool in_integers) {
  if (in_integers) return largest ? v.whole() > best.whole() : v.whole() < best.whole();
  const double x = v, b = best;
  return !std::isnan(b) && (std::isnan(x) || (largest ? x > b : x < b));
}

void evaluate(const A& a, EvalCall& c, bool largest) {
  const HostArray& x = c.in[0];
  const bool in_integers = is_integer(x.dtype);
  const int axis = normal_axis(a.axis, x.rank());
  const std::int64_t n = x.shape[axis], inner = product(x.shape, axis + 1, x.rank());
  for (std::int64_t i = 0; i < c.out[0].numel(); ++i) {
    const std::int64_t from = i / inner * n * inner + i % inner;
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < n; ++k)
      if (beats(x[from + k * inner], x[from + best * inner], largest, in_integers)) best = k;
    c.out[0][i] = static_cast<double>(best);
  }
}

OpDef arg_op(const char* name, const char* doc, bool largest, const char* onnx) {
  return define<A>({
      .name = name,
      .doc = doc,
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            const int axis = c.axis(0, a.axis);
            c.check(c.shape(0)[axis].max() > 0, "the axis has no elements", "at least one element");
            c.out(DType::I32, reduced_shape(c.shape(0), {axis}, a.keep_dims));
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([largest](const A& a, EvalCall& c) { evaluate(a, c, largest); }),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "*",
      .fusion = Fusion::RowReduce,
      .onnx = Onnx{onnx, 13},
      .samples =
          [](Samples& s) {
            s.add(A{-1, false}, {{{3, 17}}});
            s.add(A{0, false}, {{{17, 3}}});
            s.add(A{1, true}, {{{2, 5, 3}}});
            s.add(A{-1, false}, {{{0, 3}}});
            s.add(A{-1, false}, {{{2, 4097}, Fill::Uniform, 0, 0.01}}, "ties in 16 bits");
            s.add(A{-1, false}, {{{1}}});
            s.add(A{-1, false}, {ids({3, 17}, 0, 4)}, "ties");
            s.add(A{-1, false}, {{{8, 16}, Fill::Special}}, "special values");
            for (const DType t : {DType::I64, DType::I32, DType::I8, DType::U8})
              for (const std::int64_t axis : {0, 1})
                s.add(A{axis, false}, {whole_numbers({7, 67}, t)}, "integers");
          },
  });
}

}  // namespace

std::vector<OpDef> arg_reduce_ops() {
  return {arg_op("argmax", "Index of the first largest element along an axis.", true, "ArgMax"),
          arg_op("argmin", "Index of the first smallest element along an axis.", false, "ArgMin")};
}

Tensor argmax(Operand x, std::int64_t axis, bool keep_dims) {
  return emit_one("argmax", to_attrs(ArgReduceAttrs{axis, keep_dims}), {x});
}
Tensor argmin(Operand x, std::int64_t axis, bool keep_dims) {
  return emit_one("argmin", to_attrs(ArgReduceAttrs{axis, keep_dims}), {x});
}

}  // namespace aloft
