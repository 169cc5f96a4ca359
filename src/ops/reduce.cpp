#include "ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/kept_type.h"
#include "ops/op.h"
#include "ops/prod_grad.h"
#include "ops/promote.h"
#include "ops/reshape.h"
#include "scalar/integers.h"

namespace aloft {
namespace {

std::vector<int> normal_axes(const Ints& axes, int rank) {
  std::vector<int> out;
  for (std::int64_t a : axes) out.push_back(normal_axis(a, rank));
  if (axes.empty())
    for (int a = 0; a < rank; ++a) out.push_back(a);
  std::sort(out.begin(), out.end());
  return out;
}

// dy / count in the count's type, and of dy's type again.
Tensor over_count(const Tensor& dy, const Tensor& count) {
  const AsWritten as_written;
  return cast(cast(dy, count.dtype()) / count, dy.dtype());
}

void mean_vjp(const ReduceAttrs& a, Vjp& g) {
  if (!g.needs(0)) return;
  const Tensor& x = g.in(0);
  const Tensor count = element_count(x, a.axes, statistics_type(x.dtype()));
  const Tensor each = expand_reduced(over_count(g.cotangent(0), count), x, a.axes);
  g.give(0, broadcast_like(each, x));
}

// The gradient of max and min is shared by the ties.
void extremum_vjp(const ReduceAttrs& a, Vjp& g) {
  if (!g.needs(0)) return;
  const Tensor& x = g.in(0);
  const Tensor y = expand_reduced(g.out(0), x, a.axes);
  const Tensor hit = cast(equal(x, y), statistics_type(x.dtype()));
  const Tensor ties = [&] {
    const AsWritten as_written;
    return sum(hit, a.axes, true);
  }();
  const Tensor dy = expand_reduced(g.cotangent(0), x, a.axes);
  g.give(0, cast(hit, dy.dtype()) * over_count(dy, ties));
}

void prod_vjp(const ReduceAttrs& a, Vjp& g) {
  if (!g.needs(0)) return;
  const Tensor& x = g.in(0);
  g.give(0, prod_grad(x, a.axes, {}) * expand_reduced(g.cotangent(0), x, a.axes));
}

struct Row {
  const char* name;
  const char* doc;
  Numeric numeric;
  double start;
  double (*step)(double, double);
  void (*vjp)(const ReduceAttrs&, Vjp&);
  const char* onnx;
  std::int64_t (*whole)(std::int64_t, std::int64_t) = nullptr;  // of integers; null: floats only
  bool divides_by_count = false;
};

const Row kRows[] = {
    {"sum", "Sum over axes.", Numeric::Widen, 0, [](double s, double v) { return s + v; },
     [](const ReduceAttrs& a, Vjp& g) {
       if (g.needs(0))
         g.give(0, broadcast_like(expand_reduced(g.cotangent(0), g.in(0), a.axes), g.in(0)));
     },
     "ReduceSum", scalar::wrapping_add},
    {"mean", "Mean over axes.", Numeric::Widen, 0, [](double s, double v) { return s + v; },
     mean_vjp, "ReduceMean", nullptr, true},
    {"max", "Largest element over axes; NaN where one is NaN; ties share the gradient.",
     Numeric::Follow, -std::numeric_limits<double>::infinity(),
     [](double s, double v) { return std::isnan(s) || s > v ? s : v; }, extremum_vjp, "ReduceMax",
     [](std::int64_t s, std::int64_t v) { return std::max(s, v); }},
    {"min", "Smallest element over axes; NaN where one is NaN; ties share the gradient.",
     Numeric::Follow, std::numeric_limits<double>::infinity(),
     [](double s, double v) { return std::isnan(s) || s < v ? s : v; }, extremum_vjp, "ReduceMin",
     [](std::int64_t s, std::int64_t v) { return std::min(s, v); }},
    {"prod", "Product over axes.", Numeric::Widen, 1, [](double s, double v) { return s * v; },
     prod_vjp, "ReduceProd", scalar::wrapping_mul},
};

void evaluate(const Row& row, const ReduceAttrs& a, EvalCall& c) {
  const HostArray& x = c.in[0];
  HostArray& y = c.out[0];
  // Reducing is the transpose of broadcasting: walk x, and find each element's place in y.
  std::vector<std::int64_t> kept = x.shape;
  std::int64_t count = 1;
  for (int axis : normal_axes(a.axes, x.rank())) {
    count *= kept[axis];
    kept[axis] = 1;
  }
  const BroadcastIndex at(kept, x.shape);
  std::fill(y.values.begin(), y.values.end(), row.start);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    HostNumber& to = y[at(i)];
    if (is_integer(x.dtype))
      to = wrapped(row.whole(to.whole(), x[i].whole()), y.dtype);
    else
      to = row.step(to, x[i]);
  }
  if (row.divides_by_count)
    for (HostNumber& v : y.values) v /= static_cast<double>(count);
}

OpDef reduce_op(const Row& row) {
  using A = ReduceAttrs;
  return define<A>({
      .name = row.name,
      .doc = row.doc,
      .infer =
          [floats_only = row.whole == nullptr](const A& a, Infer& c) {
            c.need_count(1);
            if (floats_only) c.need_float(0);
            c.out(c.dtype(0), reduced_shape(c.shape(0), c.axes(0, a.axes), a.keep_dims));
          },
      .numeric = row.numeric,
      .meaning = Eval<A>([&row](const A& a, EvalCall& c) { evaluate(row, a, c); }),
      .vjp = VjpOf<A>(row.vjp),
      .cost =
          [](const A&, CallTypes in, CallTypes out) {
            Cost cost = elementwise_cost(0, in, out);
            cost.flops = static_cast<double>(in[0].shape.max_numel());
            return cost;
          },
      .labels = "*",
      .fusion = Fusion::RowReduce,
      .onnx = Onnx{row.onnx, 13},
      .samples =
          [name = row.name, whole = row.whole != nullptr](Samples& s) {
            const auto one = [&](Ints axes, bool keep, Shape shape) {
              s.add(A{std::move(axes), keep}, {{std::move(shape), Fill::Distinct, -2, 2}});
            };
            one({}, false, {3, 17});
            one({-1}, false, {3, 17});
            one({0}, false, {5, 3});
            one({0, 2}, true, {2, 3, 4});
            one({1}, false, {2, 17, 3});
            one({-1}, false, {2, 4097});
            one({}, true, {1});
            one({-1}, false, {0, 3});
            s.add(A{{-1}, false}, {{{8, 16}, Fill::Special}}, "special values").gradient = false;
            if (name == std::string("prod"))
              s.add(A{{-1}, false}, {{{9, 4}, Fill::Ids, 0, 4}}, "zeros");
            if (!whole) return;
            for (const DType t : {DType::I64, DType::I32, DType::I8, DType::U8})
              for (const Ints& axes : {Ints{}, Ints{0}, Ints{-1}, Ints{0, 2}})
                s.add(A{axes, false}, {whole_numbers({5, 3, 67}, t)}, "integers");
          },
  });
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  std::vector<OpDef> all;
  for (const Row& row : kRows) all.push_back(reduce_op(row));
  return all;
}

Shape reduced_shape(const Shape& shape, const std::vector<int>& axes, bool keep_dims) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), i);
    if (!reduced) out.dims().push_back(shape[i]);
    if (reduced && keep_dims) out.dims().push_back(1);
  }
  return out;
}

Tensor expand_reduced(const Tensor& t, const Tensor& like, const Ints& axes) {
  return reshape(t, reduced_shape(like.shape(), normal_axes(axes, like.rank()), true));
}

namespace {
Tensor emit_reduction(Name op, const Operand& x, const Ints& axes, bool keep_dims) {
  return emit_one(op, to_attrs(ReduceAttrs{axes, keep_dims}), {x});
}
// Sums and products of integers are made in i64.
Operand summand(const Operand& x) { return as_type(x, as_sum(x.tensor.dtype())); }
}  // namespace

Tensor sum(Operand x, const Ints& axes, bool keep_dims) {
  return emit_reduction("sum", summand(x), axes, keep_dims);
}
Tensor prod(Operand x, const Ints& axes, bool keep_dims) {
  return emit_reduction("prod", summand(x), axes, keep_dims);
}
Tensor mean(Operand x, const Ints& axes, bool keep_dims) {
  return emit_reduction("mean", x, axes, keep_dims);
}
Tensor max(Operand x, const Ints& axes, bool keep_dims) {
  return emit_reduction("max", x, axes, keep_dims);
}
Tensor min(Operand x, const Ints& axes, bool keep_dims) {
  return emit_reduction("min", x, axes, keep_dims);
}

}  // namespace aloft
