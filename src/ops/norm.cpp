#include "ops/norm.h"

#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/kept_type.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace aloft {

std::vector<OpDef> norm_ops() {
  using A = NormAttrs;
  return {define<A>({
      .name = "norm",
      .doc = "The L1 or L2 norm over axes.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.need_float(0);
            c.check(a.order == 1 || a.order == 2, "there is no such norm", "order 1 or 2");
            c.out(c.dtype(0), reduced_shape(c.shape(0), c.axes(0, a.axes), a.keep_dims));
          },
      .numeric = Numeric::Widen,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> in) -> std::vector<Tensor> {
        const Tensor x = cast(in[0], statistics_type(in[0].dtype()));
        const Tensor y = a.order == 1 ? sum(abs(x), a.axes, a.keep_dims)
                                      : sqrt(sum(square(x), a.axes, a.keep_dims));
        return {cast(y, in[0].dtype())};
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        const AsWritten as_written;
        const DType low = g.in(0).dtype(), type = statistics_type(low);
        const Tensor x = cast(g.in(0), type);
        const Tensor dy = expand_reduced(cast(g.cotangent(0), type), x, a.axes);
        if (a.order == 1) return g.give(0, cast(sign(x) * dy, low));
        const Tensor y = expand_reduced(cast(g.out(0), type), x, a.axes);
        // Where the norm is 0 nothing is divided by it, so that no gradient of this is NaN. x / y
        // is at most 1, where dy / y leaves the range.
        const Tensor zero = scalar_like(y, 0), none = equal(y, zero);
        const Tensor direction = x / where(none, scalar_like(y, 1), y);
        g.give(0, cast(direction * where(none, zero, dy), low));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(2, in, out); },
      .labels = "*",
      .fusion = Fusion::RowReduce,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            for (std::int64_t order : {1, 2}) {
              s.add(A{{}, false, order}, {{{3, 17}, Fill::Distinct, -2, 2.1}});
              s.add(A{{-1}, true, order}, {{{3, 17}, Fill::Distinct, -2, 2.1}});
              s.add(A{{0}, false, order}, {{{2, 4097}, Fill::Distinct, -2, 2.1}});
              s.add(A{{-1}, false, order}, {{{3, 0}}});
              s.add(A{{-1}, false, order}, {{{8, 16}, Fill::Special}}, "special values").gradient =
                  false;
            }
          },
  })};
}

Tensor norm(Operand x, const Ints& axes, bool keep_dims, std::int64_t order) {
  return emit_one("norm", to_attrs(NormAttrs{axes, keep_dims, order}), {x});
}

}  // namespace aloft
