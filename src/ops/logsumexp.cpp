#include "ops/logsumexp.h"

#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/identity.h"
#include "ops/kept_type.h"
#include "ops/logical.h"
#include "ops/op.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace aloft {
namespace {

// An infinite maximum is not subtracted: inf - inf would make a NaN out of it. The result does not
// depend on the shift, so no gradient goes through it: only rounding errors would.
Tensor shift_of(const Tensor& x, const Ints& axes) {
  const Tensor top = max(x, axes, true);
  return detach(where(is_finite(top), top, scalar_like(top, 0)));
}

}  // namespace

std::vector<OpDef> logsumexp_ops() {
  using A = ReduceAttrs;
  return {define<A>({
      .name = "logsumexp",
      .doc = "log(sum(exp(x))) over axes.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.need_float(0);
            c.out(c.dtype(0), reduced_shape(c.shape(0), c.axes(0, a.axes), a.keep_dims));
          },
      .numeric = Numeric::Widen,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> x) -> std::vector<Tensor> {
        const Tensor wide = cast(x[0], statistics_type(x[0].dtype()));
        const Tensor shift = shift_of(wide, a.axes);
        const Tensor total = sum(exp(wide - shift), a.axes, a.keep_dims);
        return {cast(log(total) + reshape(shift, total.shape()), x[0].dtype())};
      }),
      // dx = dy exp(x - y), from the shifted exponentials: a large y is rounded too far for that.
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        const AsWritten as_written;
        const Tensor x = cast(g.in(0), statistics_type(g.in(0).dtype()));
        const Tensor dy = expand_reduced(cast(g.cotangent(0), x.dtype()), x, a.axes);
        const Tensor e = exp(x - shift_of(x, a.axes));
        g.give(0, cast(dy * (e / sum(e, a.axes, true)), g.in(0).dtype()));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "*",
      .fusion = Fusion::RowReduce,
      .onnx = Onnx{"ReduceLogSumExp", 13},
      .samples =
          [](Samples& s) {
            s.add(A{{-1}, false}, {{{3, 17}}});
            s.add(A{{}, false}, {{{3, 17}}});
            s.add(A{{0, 2}, true}, {{{2, 3, 4}}});
            s.add(A{{-1}, false}, {{{2, 4097}}});
            s.add(A{{-1}, false}, {{{3, 0}}}).gradient = false;
            s.add(A{{-1}, false}, {{{1, 70000}, Fill::Constant, 0}}, "more than f16 counts");
            s.add(A{{-1}, false}, {{{3, 8}, Fill::Uniform, 900, 1000}}, "would overflow");
            s.add(A{{-1}, false}, {{{8, 16}, Fill::Special}}, "special values").gradient = false;
          },
  })};
}

Tensor logsumexp(Operand x, const Ints& axes, bool keep_dims) {
  return emit_one("logsumexp", to_attrs(ReduceAttrs{axes, keep_dims}), {x});
}

}  // namespace aloft
