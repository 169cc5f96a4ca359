#include "ops/var.h"

#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/statistics.h"
#include "ops/unary.h"

namespace aloft {

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
        const Tensor squares = square(x - mean(x, a.axes, true));
        const Tensor count = element_count(x, a.axes, x.dtype()) - a.correction;
        return {cast(sum(squares, a.axes, a.keep_dims) / count, in[0].dtype())};
      }),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(4, in, out); },
      .labels = "*",
      .fusion = Fusion::RowReduce,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{{}, false, 1}, {{{3, 17}}});
            s.add(A{{-1}, true, 0}, {{{3, 17}}});
            s.add(A{{0}, false, 1}, {{{4097, 2}}});
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
