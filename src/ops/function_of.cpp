#include "ops/function_of.h"

#include "ops/broadcast.h"
#include "ops/constant.h"
#include "ops/identity.h"
#include "ops/op.h"

namespace aloft {
namespace {

using A = NoAttrs;

// A gradient that reaches x at all, so that who looks for it there is called.
void give_zeros(const A&, Vjp& g) {
  if (g.needs(0)) g.give(0, g.cotangent(0));
  for (int i = 1; i < g.count(); ++i)
    if (g.needs(i)) g.give(i, broadcast_like(full({}, 0, g.in(i).dtype()), g.in(i)));
}

OpDef function_of_op() {
  return define<A>({
      .name = "function_of",
      .doc = "The first operand, of which the others have gradients that somebody else gives.",
      .infer =
          [](const A&, Infer& c) {
            c.check(c.count() >= 2, "nothing that it is a function of", "y, and at least one x");
            c.out(c.in(0));
          },
      .numeric = Numeric::Exact,
      .meaning = Body<A>([](const A&, std::span<const Tensor> x) -> std::vector<Tensor> {
        return {identity(x[0])};
      }),
      .vjp = VjpOf<A>(give_zeros),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{}, {{{3, 17}}, {{17}}});
            s.add(A{}, {{{1}}, {{2, 3}}, {{}}});
            s.add(A{}, {{{0, 4}}, {{4097}}});
            s.add(A{}, {{{4097}}, {{0}}});
            s.add(A{}, {{{64}, Fill::Special}, {{3}}}, "special values").gradient = false;
          },
  });
}

}  // namespace

std::vector<OpDef> function_of_ops() { return {function_of_op()}; }

Tensor function_of(Operand y, const std::vector<Tensor>& x) {
  std::vector<Operand> operands = {y};
  operands.insert(operands.end(), x.begin(), x.end());
  return emit_op("function_of", {}, operands)[0];
}

}  // namespace aloft
