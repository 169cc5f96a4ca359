#include "ops/pad.h"

#include <algorithm>

#include "ops/extents.h"
#include "ops/op.h"
#include "ops/slice.h"

namespace aloft {

namespace {
// From one of n elements to the next; between fewer than two there may be any number of others.
std::int64_t step_of(const PadAttrs& a, std::int64_t n) { return n > 1 ? a.between + 1 : 1; }
}  // namespace

std::vector<OpDef> pad_ops() {
  using A = PadAttrs;
  return {define<A>({
      .name = "pad",
      .doc = "Puts a value in front of, behind and between the elements of one axis.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            const int axis = c.axis(0, a.axis);
            c.check(c.shape(0)[axis].is_constant(), "the axis is symbolic", "a constant length");
            c.check(a.before >= 0 && a.after >= 0 && a.between >= 0, "a count is negative",
                    "counts >= 0", "slice(x, axis, start, stop)");
            Shape out = c.shape(0);
            const std::int64_t n = out[axis].max();
            const std::int64_t between =
                extent_product(std::max<std::int64_t>(0, n - 1), a.between);
            out[axis] = extent_sum(extent_sum(a.before, extent_sum(n, between)), a.after);
            c.out(c.dtype(0), out);
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const HostArray& x = c.in[0];
        HostArray& y = c.out[0];
        const int axis = normal_axis(a.axis, x.rank());
        const std::int64_t n = x.shape[axis], m = y.shape[axis];
        const std::int64_t inner = product(x.shape, axis + 1, x.rank());
        const std::int64_t step = step_of(a, n);
        std::fill(y.values.begin(), y.values.end(), a.value);
        for (std::int64_t i = 0; i < x.numel(); ++i) {
          const std::int64_t outer = i / inner / n, k = i / inner % n;
          y[(outer * m + a.before + k * step) * inner + i % inner] = x[i];
        }
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        const std::int64_t n = g.in(0).dim(normal_axis(a.axis, g.in(0).rank())).max();
        const std::int64_t step = step_of(a, n), covered = n == 0 ? 0 : (n - 1) * step + 1;
        g.give(0, slice(g.cotangent(0), a.axis, a.before, a.before + covered, step));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"Pad", 13},
      .samples =
          [](Samples& s) {
            s.add(A{0, 1, 2}, {{{3, 17}}});
            s.add(A{1, 0, 3, -1.5}, {{{3, 17}}});
            s.add(A{-1, 2, 1, 0, 2}, {{{3, 17}}});
            s.add(A{1, 1, 1, 0.5}, {{{2, 5, 3}}});
            s.add(A{0, 2, 1}, {{{0, 4}}});
            s.add(A{0, 1, 1}, {{{1}}});
            s.add(A{0, 5, 0, 0, 1}, {{{4097}}});
            s.add(A{1, 1, 1, 7}, {ids({3, 5}, 0, 9)}).gradient = false;
          },
      .only_moves = true,
  })};
}

Tensor pad(Operand x, std::int64_t axis, std::int64_t before, std::int64_t after, double value,
           std::int64_t between) {
  return emit_one("pad", to_attrs(PadAttrs{axis, before, after, value, between}), {x});
}

}  // namespace aloft
