#include "ops/var.h"

#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/identity.h"
#include "ops/kept_type.h"
#include "ops/logical.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace aloft {
namespace {

// x without its mean. A mean that lies far from 0 is rounded coarsely beside the distances from it,
// so what is left of it is taken off too; the first one is as good as any number near the mean, so
// no gradient goes through it. Infinite distances have no mean and stay as they are.
Tensor centred(const Tensor& x, const Ints& axes) {
  const Tensor near = x - detach(mean(x, axes, true));
  const Tensor rest = mean(near, axes, true);
  return near - where(is_finite(rest), rest, scalar_like(rest, 0));
}

// Never below 0: of no more values than `correction` the variance is infinite, or 0 / 0.
Tensor degrees_of_freedom(const VarAttrs& a, const Tensor& x) {
  const Tensor count = element_count(x, a.axes, x.dtype()) - a.correction;
  return maximum(count, scalar_like(count, 0));
}

}  // namespace

std::vector<OpDef> var_ops() {
  using A = VarAttrs;
  return {define<A>({
      .name = "var",
      .doc = "Sum of squared distances from the mean over axes, over the count less `correction`.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.need_float(0);
            c.out(c.dtype(0), reduced_shape(c.shape(0), c.axes(0, a.axes), a.keep_dims));
          },
      .numeric = Numeric::Widen,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> in) -> std::vector<Tensor> {
        const Tensor x = cast(in[0], statistics_type(in[0].dtype()));
        const Tensor squares = square(centred(x, a.axes));
        const Tensor count = degrees_of_freedom(a, x);
        return {cast(sum(squares, a.axes, a.keep_dims) / count, in[0].dtype())};
      }),
      // dx = 2 dy (x - mean) / count: the distances add up to nothing, so the mean's own gradient
      // is 0 (and not infinity less infinity).
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        const AsWritten as_written;
        const Tensor x = cast(g.in(0), statistics_type(g.in(0).dtype()));
        const Tensor dy = expand_reduced(cast(g.cotangent(0), x.dtype()), x, a.axes);
        const Tensor count = degrees_of_freedom(a, x);
        g.give(0, cast(centred(x, a.axes) * (dy * 2 / count), g.in(0).dtype()));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(4, in, out); },
      .labels = "*",
      .fusion = Fusion::RowReduce,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{{}, false, 1}, {{{3, 17}}});
            s.add(A{{-1}, true, 0}, {{{3, 17}}});
            s.add(A{{0}, false, 1}, {{{4097, 2}}});
            s.add(A{{-1}, false, 1}, {{{2, 4097}}});
            s.add(A{{-1}, false, 0}, {{{3, 1}}});
            s.add(A{{-1}, false, 1}, {{{0, 3}}});
            s.add(A{{-1}, false, 1}, {{{8, 16}, Fill::Special}}, "special values").gradient = false;
          },
  })};
}

Tensor var(Operand x, const Ints& axes, bool keep_dims, double correction) {
  return emit_one("var", to_attrs(VarAttrs{axes, keep_dims, correction}), {x});
}

}  // namespace aloft
