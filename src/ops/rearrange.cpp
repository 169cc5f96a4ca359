#include "ops/rearrange.h"

#include <algorithm>

#include "ops/broadcast.h"
#include "ops/concat.h"
#include "ops/op.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace aloft {
namespace {

OpDef flip_op() {
  using A = FlipAttrs;
  return define<A>({
      .name = "flip",
      .doc = "Reverses an axis.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.axis(0, a.axis);
            c.out(c.in(0));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const HostArray& x = c.in[0];
        const int axis = normal_axis(a.axis, x.rank());
        const std::int64_t n = x.shape[axis], inner = product(x.shape, axis + 1, x.rank());
        for (std::int64_t i = 0; i < x.numel(); ++i) {
          const std::int64_t outer = i / inner / n, k = i / inner % n;
          c.out[0][i] = x[(outer * n + n - 1 - k) * inner + i % inner];
        }
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0)) g.give(0, flip(g.cotangent(0), a.axis));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{0}, {{{3, 17}}});
            s.add(A{-1}, {{{3, 17}}});
            s.add(A{1}, {{{2, 5, 3}}});
            s.add(A{0}, {{{0, 2}}});
            s.add(A{0}, {{{4097}}});
            s.add(A{0}, {{{1}}});
          },
      .only_moves = true,
  });
}

OpDef roll_op() {
  using A = RollAttrs;
  return define<A>({
      .name = "roll",
      .doc = "Turns an axis: what leaves at one end comes in at the other.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.check(c.shape(0)[c.axis(0, a.axis)].is_constant(), "the axis is symbolic",
                    "a constant length");
            c.out(c.in(0));
          },
      .numeric = Numeric::Follow,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> x) -> std::vector<Tensor> {
        const std::int64_t n = x[0].dim(normal_axis(a.axis, x[0].rank())).max();
        if (n == 0) return {slice(x[0], a.axis, 0)};
        const std::int64_t cut = n - ((a.shift % n) + n) % n;
        return {concat({slice(x[0], a.axis, cut), slice(x[0], a.axis, 0, cut)}, a.axis)};
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        const std::int64_t n = g.in(0).dim(normal_axis(a.axis, g.in(0).rank())).max();
        g.give(0, roll(g.cotangent(0), -(a.shift % std::max<std::int64_t>(1, n)), a.axis));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{0, 1}, {{{3, 17}}});
            s.add(A{-1, -20}, {{{3, 17}}});
            s.add(A{1, 0}, {{{2, 5, 3}}});
            s.add(A{0, 3}, {{{0, 2}}});
            s.add(A{0, 3}, {{{1}}});
            s.add(A{0, 4096}, {{{4097}}});
          },
      .only_moves = true,
  });
}

// x with a new axis of length `count` at `place`, joined with its neighbour into `shape`.
Tensor repeated(const Tensor& x, int place, std::int64_t count, const Shape& shape) {
  Shape one = x.shape();
  one.dims().insert(one.dims().begin() + place, Dim(1));
  Shape many = one;
  many[place] = count;
  return reshape(broadcast_to(reshape(x, one), many), shape);
}

OpDef repeating_op(const char* name, const char* doc, int behind) {
  using A = RepeatAttrs;
  return define<A>({
      .name = name,
      .doc = doc,
      .infer =
          [behind](const A& a, Infer& c) {
            c.need_count(1);
            const int axis = c.axis(0, a.axis);
            c.check(a.count >= 1, "the count is not positive", "count >= 1");
            Shape out = c.shape(0);
            // A new axis in front of a symbolic one would push it inwards.
            c.check(behind == 1 || axis > 0 || out[axis].is_constant(), "the axis is symbolic",
                    "a constant length");
            out[axis] = out[axis] * Dim(a.count);
            c.out(c.dtype(0), out);
          },
      .numeric = Numeric::Follow,
      .meaning = Body<A>([behind](const A& a, std::span<const Tensor> x) -> std::vector<Tensor> {
        const int axis = normal_axis(a.axis, x[0].rank());
        Shape out = x[0].shape();
        out[axis] = out[axis] * Dim(a.count);
        return {repeated(x[0], axis + behind, a.count, out)};
      }),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{0, 3}, {{{3, 17}}});
            s.add(A{-1, 2}, {{{3, 17}}});
            s.add(A{1, 4}, {{{2, 5, 3}}});
            s.add(A{0, 2}, {{{0, 2}}});
            s.add(A{0, 2}, {{{4097}}});
            s.add(A{0, 1}, {{{5}}});
            s.add(A{0, 3}, {{{1}}});
          },
      .only_moves = true,
  });
}

}  // namespace

std::vector<OpDef> rearrange_ops() {
  return {flip_op(), roll_op(), repeating_op("tile", "The whole axis several times: a b a b.", 0),
          repeating_op("repeat", "Each element of an axis several times: a a b b.", 1)};
}

Tensor flip(Operand x, std::int64_t axis) {
  return emit_one("flip", to_attrs(FlipAttrs{axis}), {x});
}
Tensor roll(Operand x, std::int64_t shift, std::int64_t axis) {
  return emit_one("roll", to_attrs(RollAttrs{axis, shift}), {x});
}
Tensor tile(Operand x, std::int64_t count, std::int64_t axis) {
  return emit_one("tile", to_attrs(RepeatAttrs{axis, count}), {x});
}
Tensor repeat(Operand x, std::int64_t count, std::int64_t axis) {
  return emit_one("repeat", to_attrs(RepeatAttrs{axis, count}), {x});
}

}  // namespace aloft
