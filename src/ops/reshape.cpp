#include "ops/reshape.h"

#include "base/error.h"
#include "graph/refuse.h"
#include "ops/op.h"

namespace aloft {

std::vector<OpDef> reshape_ops() {
  using A = ReshapeAttrs;
  return {define<A>({
      .name = "reshape",
      .doc = "The same elements in the same order under another shape.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.check(c.shape(0).numel() == a.shape.numel(), "the number of elements changes",
                    "as many elements as " + c.shape(0).str() + " has; asked for " + a.shape.str());
            c.out(c.dtype(0), a.shape);
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A&, EvalCall& c) { c.out[0].values = c.in[0].values; }),
      .vjp = VjpOf<A>([](const A&, Vjp& g) {
        if (g.needs(0)) g.give(0, reshape(g.cotangent(0), g.in(0).shape()));
      }),
      .cost = [](const A&, CallTypes, CallTypes) { return Cost{}; },
      .labels = "*",
      .fusion = Fusion::View,
      .onnx = Onnx{"Reshape", 14},
      .samples =
          [](Samples& s) {
            s.add(A{{17, 3}}, {{{3, 17}}});
            s.add(A{{}}, {{{1, 1}}});
            s.add(A{{0, 5}}, {{{3, 0}}});
            s.add(A{{4097}}, {{{4097, 1}}});
          },
      .only_moves = true,
  })};
}

Tensor reshape(Operand x, const Shape& shape) {
  if (x.tensor.shape() == shape) return x.tensor;
  return emit_one("reshape", to_attrs(ReshapeAttrs{shape}), {x});
}

Tensor flatten(Operand x, int from, int to) {
  const Shape s = x.tensor.shape();
  if (s.rank() > 0) {                                // a single number has nothing to join
    for (int axis : {from, to}) x.tensor.dim(axis);  // refuses what is no axis
    from = normal_axis(from, s.rank());
    to = normal_axis(to, s.rank());
    if (from > to)
      refuse(
          UserError("E0107", "flatten: the axes to be joined end before they begin")
              .at(place_of(where_of(x.loc)))
              .saw("axes " + std::to_string(from) + " to " + std::to_string(to) + " of " + s.str())
              .need("a first axis that is not behind the last"),
          x.tensor);
  }
  Shape out;
  Dim joined = 1;
  for (int i = 0; i < s.rank(); ++i) {
    if (i < from || i > to) {
      out.dims().push_back(s[i]);
      continue;
    }
    joined = joined * s[i];
    if (i == to) out.dims().push_back(joined);
  }
  return reshape(x, out);
}

}  // namespace aloft
