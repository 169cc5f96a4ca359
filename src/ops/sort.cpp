#include "ops/sort.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/constant.h"
#include "ops/gather.h"
#include "ops/op.h"
#include "ops/slice.h"

namespace aloft {
namespace {

bool comes_before(const HostNumber& a, const HostNumber& b, bool in_integers) {
  if (in_integers) return a.whole() < b.whole();
  const double x = a, y = b;
  return std::isnan(y) ? !std::isnan(x) : x < y;
}

void evaluate(const SortAttrs& a, EvalCall& c) {
  const HostArray& x = c.in[0];
  const int axis = normal_axis(a.axis, x.rank());
  const std::int64_t n = x.shape[axis], inner = product(x.shape, axis + 1, x.rank());
  std::vector<std::int64_t> order(n);
  for (std::int64_t row = 0; row < (n ? x.numel() / n : 0); ++row) {
    const std::int64_t from = row / inner * n * inner + row % inner;
    const auto value = [&](std::int64_t k) { return x[from + k * inner]; };
    const bool whole = is_integer(x.dtype);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
      return a.descending ? comes_before(value(j), value(i), whole)
                          : comes_before(value(i), value(j), whole);
    });
    for (std::int64_t k = 0; k < n; ++k) {
      c.out[0][from + k * inner] = value(order[k]);
      c.out[1][from + k * inner] = static_cast<double>(order[k]);
    }
  }
}

// The cotangent of values goes back to where they came from.
Tensor back_to_places(const Tensor& x, const Tensor& indices, const Tensor& dy, std::int64_t axis) {
  EmitterScope scope(*x.emitter());
  return scatter_add(full(x.shape(), 0, x.dtype()), indices, dy, axis);
}

Cost cost_of(CallTypes in, CallTypes out) {
  Cost c = elementwise_cost(0, in, out);
  const auto n = static_cast<double>(in[0].shape.max_numel());
  c.flops = n * std::log2(n + 2);
  return c;
}

void sort_samples(Samples& s) {
  using A = SortAttrs;
  s.add(A{-1, false}, {{{3, 17}, Fill::Distinct, -2, 2}});
  s.add(A{0, true}, {{{5, 3}, Fill::Distinct, -2, 2}});
  s.add(A{1, false}, {{{2, 5, 3}, Fill::Distinct, -2, 2}});
  s.add(A{0, false}, {{{4097}}}, "ties in 16 bits").gradient = false;
  s.add(A{-1, true}, {{{3, 0}}});
  s.add(A{-1, false}, {{{0, 3}}});
  s.add(A{0, true}, {{{1}}});
  s.add(A{-1, true}, {ids({3, 17}, 0, 5)}, "ties").gradient = false;
  s.add(A{-1, false}, {{{8, 16}, Fill::Special}}, "special values").gradient = false;
  for (const DType t : {DType::I64, DType::I32, DType::I8, DType::U8})
    s.add(A{-1, false}, {whole_numbers({3, 67}, t)}, "integers").gradient = false;
}

OpDef sort_op() {
  using A = SortAttrs;
  return define<A>({
      .name = "sort",
      .doc = "Sorts an axis; also gives where each value was. Stable; NaN is the largest.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.axis(0, a.axis);
            c.out(c.in(0));
            c.out(DType::I32, c.shape(0));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>(evaluate),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0) && g.has_cotangent(0))
          g.give(0, back_to_places(g.in(0), g.out(1), g.cotangent(0), a.axis));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return cost_of(in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = sort_samples,
      .only_moves = true,
  });
}

OpDef argsort_op() {
  using A = SortAttrs;
  return define<A>({
      .name = "argsort",
      .doc = "Where each value of the sorted axis was.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.axis(0, a.axis);
            c.out(DType::I32, c.shape(0));
          },
      .numeric = Numeric::Exact,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> x) -> std::vector<Tensor> {
        return {sort(x[0], a.axis, a.descending)[1]};
      }),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return cost_of(in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = sort_samples,
  });
}

OpDef top_k_op() {
  using A = TopKAttrs;
  return define<A>({
      .name = "top_k",
      .doc = "The k largest (or smallest) of an axis in order, and where they were.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            const int axis = c.axis(0, a.axis);
            Shape out = c.shape(0);
            c.check(out[axis].is_constant(), "the axis is symbolic", "a constant length");
            c.check(a.k >= 0 && a.k <= out[axis].max(), "k is out of range",
                    "0 <= k <= " + out[axis].str());
            out[axis] = a.k;
            c.out(c.dtype(0), out);
            c.out(DType::I32, out);
          },
      .numeric = Numeric::Follow,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> x) -> std::vector<Tensor> {
        const std::vector<Tensor> sorted = sort(x[0], a.axis, a.largest);
        return {slice(sorted[0], a.axis, 0, a.k), slice(sorted[1], a.axis, 0, a.k)};
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0) && g.has_cotangent(0))
          g.give(0, back_to_places(g.in(0), g.out(1), g.cotangent(0), a.axis));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return cost_of(in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"TopK", 11},
      .samples =
          [](Samples& s) {
            s.add(A{3, -1, true}, {{{3, 17}, Fill::Distinct, -2, 2}});
            s.add(A{2, 0, false}, {{{5, 3}, Fill::Distinct, -2, 2}});
            s.add(A{1, 1, true}, {{{2, 5, 3}, Fill::Distinct, -2, 2}});
            s.add(A{40, 0, true}, {{{4097}, Fill::Normal}}, "ties in 16 bits").gradient = false;
            s.add(A{0, -1, true}, {{{3, 4}}});
            s.add(A{4, -1, true}, {{{8, 16}, Fill::Special}}, "special values").gradient = false;
          },
      .only_moves = true,
  });
}

}  // namespace

std::vector<OpDef> sort_ops() { return {sort_op(), argsort_op(), top_k_op()}; }

std::vector<Tensor> sort(Operand x, std::int64_t axis, bool descending) {
  return emit_op("sort", to_attrs(SortAttrs{axis, descending}), std::span<const Operand>(&x, 1));
}
Tensor argsort(Operand x, std::int64_t axis, bool descending) {
  return emit_one("argsort", to_attrs(SortAttrs{axis, descending}), {x});
}
std::vector<Tensor> top_k(Operand x, std::int64_t k, std::int64_t axis, bool largest) {
  return emit_op("top_k", to_attrs(TopKAttrs{k, axis, largest}), std::span<const Operand>(&x, 1));
}

}  // namespace aloft
