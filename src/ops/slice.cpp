#include "ops/slice.h"

#include <algorithm>

#include "ops/op.h"
#include "ops/pad.h"

namespace aloft {

std::vector<OpDef> slice_ops() {
  using A = SliceAttrs;
  return {define<A>({
      .name = "slice",
      .doc = "Elements start, start + step, ... before stop of one axis.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            const int axis = c.axis(0, a.axis);
            c.check(c.shape(0)[axis].is_constant(), "the axis is symbolic", "a constant length",
                    "slice another axis, or the batch before it reaches the program");
            c.check(a.step >= 1, "the step is not positive", "step >= 1", "flip(x, axis)");
            Shape out = c.shape(0);
            out[axis] = range_of(a, out[axis].max()).count;
            c.out(c.dtype(0), out);
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const HostArray& x = c.in[0];
        const int axis = normal_axis(a.axis, x.rank());
        const std::int64_t n = x.shape[axis], inner = product(x.shape, axis + 1, x.rank());
        const SliceRange r = range_of(a, n);
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i) {
          const std::int64_t outer = i / inner / r.count, k = i / inner % r.count;
          c.out[0][i] = x[(outer * n + r.first + k * a.step) * inner + i % inner];
        }
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        const std::int64_t n = g.in(0).dim(normal_axis(a.axis, g.in(0).rank())).max();
        const SliceRange r = range_of(a, n);
        const std::int64_t covered = r.count == 0 ? 0 : (r.count - 1) * a.step + 1;
        g.give(0, pad(g.cotangent(0), a.axis, r.first, n - r.first - covered, 0, a.step - 1));
      }),
      .cost =
          [](const A&, CallTypes, CallTypes out) {
            return Cost{0, static_cast<double>(2 * out[0].max_bytes())};
          },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"Slice", 13},
      .samples =
          [](Samples& s) {
            s.add(A{0, 1, 3}, {{{5, 17}}});
            s.add(A{1, -5, INT64_MAX}, {{{3, 17}}});
            s.add(A{-1, 1, -1, 3}, {{{3, 17}}});
            s.add(A{1, 0, 2, 1}, {{{2, 5, 3}}});
            s.add(A{1, 2, 2}, {{{3, 17}}}, "nothing");
            s.add(A{0, 0, 3}, {{{0, 4}}});
            s.add(A{0, 0, 3}, {{{1}}});
            s.add(A{0, 17, 4000, 2}, {{{4097}}});
            s.add(A{1, 1, 4}, {ids({3, 5}, 0, 9, DType::I64)}).gradient = false;
          },
      .only_moves = true,
  })};
}

Tensor slice(Operand x, std::int64_t axis, std::int64_t start, std::int64_t stop,
             std::int64_t step) {
  return emit_one("slice", to_attrs(SliceAttrs{axis, start, stop, step}), {x});
}

}  // namespace aloft
