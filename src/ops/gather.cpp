#include "ops/gather.h"

#include <limits>

#include "ops/constant.h"
#include "ops/op.h"
#include "ops/reshape.h"
#include "scalar/integers.h"

namespace aloft {
namespace {

using A = GatherAttrs;

Cost cost(const A&, CallTypes in, CallTypes out) {
  return {0, static_cast<double>(2 * out[0].max_bytes() + in[1].max_bytes())};
}
// Of what adds its third operand.
Cost cost_of_adding(const A& a, CallTypes in, CallTypes out) {
  return {static_cast<double>(in[2].shape.max_numel()), cost(a, in, out).bytes};
}

// Where `id` points along an axis of n elements; -1: outside.
std::int64_t place_of_id(double id, std::int64_t n) {
  return id >= 0 && id < static_cast<double>(n) ? static_cast<std::int64_t>(id) : -1;
}
double nothing(DType t) { return is_float(t) ? std::numeric_limits<double>::quiet_NaN() : 0; }

// How an op's indices are laid out: one for each element, or a list that picks whole slices.
enum class Ids { Each, List };

// Calls f(i, place in x) for each of `count` elements that x's axis is indexed for; place -1:
// outside.
template <class F>
void for_each_place(const A& a, const HostArray& x, const HostArray& ids, Ids layout,
                    std::int64_t count, const F& f) {
  const int axis = normal_axis(a.axis, x.rank());
  const bool each = layout == Ids::Each;
  const std::int64_t n = x.shape[axis], m = each ? ids.shape[axis] : ids.numel();
  const std::int64_t inner = product(x.shape, axis + 1, x.rank());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t k = place_of_id(ids[each ? i : i / inner % m], n);
    f(i, k < 0 ? -1 : (i / inner / m * n + k) * inner + i % inner);
  }
}

void read(const A& a, EvalCall& c, Ids layout) {
  const HostArray& x = c.in[0];
  for_each_place(a, x, c.in[1], layout, c.out[0].numel(), [&](std::int64_t i, std::int64_t at) {
    c.out[0][i] = at < 0 ? HostNumber(nothing(x.dtype)) : x[at];
  });
}

void add(const A& a, EvalCall& c, Ids layout) {
  const HostArray& updates = c.in[2];
  HostArray& y = c.out[0];
  y.values = c.in[0].values;
  for_each_place(a, y, c.in[1], layout, updates.numel(), [&](std::int64_t i, std::int64_t at) {
    if (at < 0) return;
    if (is_integer(y.dtype))
      y[at] = wrapped(scalar::wrapping_add(y[at].whole(), updates[i].whole()), y.dtype);
    else
      y[at] += updates[i];
  });
}

// Shapes that are equal but for an axis.
void need_equal_but(Infer& c, int i, int j, int axis) {
  Shape a = c.shape(i), b = c.shape(j);
  const bool ranks = a.rank() == b.rank();
  if (ranks) b[axis] = a[axis];
  c.check(ranks && a == b,
          "operands " + std::to_string(i) + " and " + std::to_string(j) + " do not fit",
          "shapes that are equal but for axis " + std::to_string(axis));
}

OpDef gather_op() {
  return define<A>({
      .name = "gather",
      .doc = "Reads along an axis at an index for every element of the result.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(2);
            const int axis = c.axis(0, a.axis);
            c.need_integer(1);
            need_equal_but(c, 0, 1, axis);
            c.out(c.dtype(0), c.shape(1));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) { read(a, c, Ids::Each); }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        EmitterScope scope(*g.in(0).emitter());
        const Tensor zeros = full(g.in(0).shape(), 0, g.in(0).dtype());
        g.give(0, scatter_add(zeros, g.in(1), g.cotangent(0), a.axis));
      }),
      .cost = cost,
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"GatherElements", 13},
      .samples =
          [](Samples& s) {
            s.add(A{0}, {{{5, 3}}, ids({4, 3}, 0, 5)});
            s.add(A{-1}, {{{3, 17}}, ids({3, 4}, 0, 17, DType::I64)});
            s.add(A{1}, {{{2, 5, 3}}, ids({2, 7, 3}, 0, 5)});
            s.add(A{0}, {{{4097}}, ids({17}, 0, 4097)});
            s.add(A{0}, {{{5}}, ids({0}, 0, 5)});
            s.add(A{0}, {{{1}}, ids({1}, 0, 1)});
            s.add(A{0}, {{{3, 4}}, ids({9, 4}, -2, 5)}, "ids outside").gradient = false;
          },
      .only_moves = true,
      .keep_inputs = {1},
  });
}

OpDef scatter_add_op() {
  return define<A>({
      .name = "scatter_add",
      .doc = "Adds along an axis at an index for every element of the updates.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(3);
            const int axis = c.axis(0, a.axis);
            c.need_integer(1);
            c.need_same_dtype(0, 2);
            c.need_same_shape(1, 2);
            need_equal_but(c, 0, 1, axis);
            c.out(c.in(0));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) { add(a, c, Ids::Each); }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0)) g.give(0, g.cotangent(0));
        if (g.needs(2)) g.give(2, gather(g.cotangent(0), g.in(1), a.axis));
      }),
      .cost = cost_of_adding,
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"ScatterElements", 16},
      .samples =
          [](Samples& s) {
            s.add(A{0}, {{{5, 3}}, ids({4, 3}, 0, 5), {{4, 3}}});
            s.add(A{-1}, {{{3, 4}}, ids({3, 17}, 0, 4, DType::I64), {{3, 17}}}, "repeated ids");
            s.add(A{1}, {{{2, 5, 3}}, ids({2, 7, 3}, 0, 5), {{2, 7, 3}}});
            s.add(A{0}, {{{4097}}, ids({17}, 0, 4097), {{17}}});
            s.add(A{0}, {{{5}}, ids({0}, 0, 5), {{0}}});
            s.add(A{0}, {{{1}}, ids({1}, 0, 1), {{1}}});
            s.add(A{0}, {{{3, 4}}, ids({9, 4}, -2, 5), {{9, 4}}}, "ids outside").gradient = false;
          },
      .keep_inputs = {1},
  });
}

OpDef take_op() {
  return define<A>({
      .name = "take",
      .doc = "Reads whole slices of an axis at a list of indices.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(2);
            const int axis = c.axis(0, a.axis);
            c.need_integer(1);
            c.check(axis == 0 || c.shape(1).is_constant(),
                    "symbolic indices would not stay outermost", "axis 0, or constant indices");
            c.check(axis > 0 || c.shape(0).is_constant(), "the axis is symbolic",
                    "a constant length");
            Shape out;
            for (int d = 0; d < axis; ++d) out.dims().push_back(c.shape(0)[d]);
            for (const Dim& d : c.shape(1)) out.dims().push_back(d);
            for (int d = axis + 1; d < c.shape(0).rank(); ++d) out.dims().push_back(c.shape(0)[d]);
            c.out(c.dtype(0), out);
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) { read(a, c, Ids::List); }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        const Tensor &x = g.in(0), &ids = g.in(1);
        EmitterScope scope(*x.emitter());
        Shape flat = x.shape();
        flat[normal_axis(a.axis, x.rank())] = ids.shape().numel();
        g.give(0, index_add(full(x.shape(), 0, x.dtype()), reshape(ids, {ids.shape().numel()}),
                            reshape(g.cotangent(0), flat), a.axis));
      }),
      .cost = cost,
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"Gather", 13},
      .samples =
          [](Samples& s) {
            s.add(A{0}, {{{5, 3}}, ids({4}, 0, 5)});
            s.add(A{-1}, {{{3, 17}}, ids({2, 3}, 0, 17, DType::I64)});
            s.add(A{1}, {{{2, 5, 3}}, ids({}, 0, 5)});
            s.add(A{0}, {{{4097}}, ids({17}, 0, 4097)});
            s.add(A{0}, {{{5}}, ids({0}, 0, 5)});
            s.add(A{0}, {{{1}}, ids({1}, 0, 1)});
            s.add(A{0}, {{{3, 4}}, ids({9}, -2, 5)}, "ids outside").gradient = false;
          },
      .only_moves = true,
      .keep_inputs = {1},
  });
}

OpDef index_add_op() {
  return define<A>({
      .name = "index_add",
      .doc = "Adds whole slices of an axis at a list of indices.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(3);
            const int axis = c.axis(0, a.axis);
            c.need_rank(1, 1, 1);
            c.need_integer(1);
            c.need_same_dtype(0, 2);
            need_equal_but(c, 0, 2, axis);
            c.check(c.shape(2)[axis] == c.shape(1)[0], "as many updates as indices are missing",
                    "an index for each slice of the updates");
            c.out(c.in(0));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) { add(a, c, Ids::List); }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0)) g.give(0, g.cotangent(0));
        if (g.needs(2)) g.give(2, take(g.cotangent(0), g.in(1), a.axis));
      }),
      .cost = cost_of_adding,
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{0}, {{{5, 3}}, ids({4}, 0, 5), {{4, 3}}});
            s.add(A{-1}, {{{3, 4}}, ids({17}, 0, 4, DType::I64), {{3, 17}}}, "repeated ids");
            s.add(A{1}, {{{2, 5, 3}}, ids({7}, 0, 5), {{2, 7, 3}}});
            s.add(A{0}, {{{4097}}, ids({17}, 0, 4097), {{17}}});
            s.add(A{0}, {{{5}}, ids({0}, 0, 5), {{0}}});
            s.add(A{0}, {{{1}}, ids({1}, 0, 1), {{1}}});
            s.add(A{0}, {{{3, 4}}, ids({9}, -2, 5), {{9, 4}}}, "ids outside").gradient = false;
          },
      .keep_inputs = {1},
  });
}

}  // namespace

std::vector<OpDef> gather_ops() {
  return {gather_op(), scatter_add_op(), take_op(), index_add_op()};
}

Tensor gather(Operand x, Operand ids, std::int64_t axis) {
  return emit_one("gather", to_attrs(A{axis}), {x, ids});
}
Tensor scatter_add(Operand into, Operand ids, Operand updates, std::int64_t axis) {
  return emit_one("scatter_add", to_attrs(A{axis}), {into, ids, updates});
}
Tensor take(Operand x, Operand ids, std::int64_t axis) {
  return emit_one("take", to_attrs(A{axis}), {x, ids});
}
Tensor index_add(Operand into, Operand ids, Operand updates, std::int64_t axis) {
  return emit_one("index_add", to_attrs(A{axis}), {into, ids, updates});
}

}  // namespace aloft
