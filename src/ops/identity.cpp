#include "ops/identity.h"

#include "ops/op.h"

namespace aloft {
namespace {

OpDef copy_op(const char* name, const char* doc, bool passes_gradient, const char* onnx) {
  using A = NoAttrs;
  std::variant<VjpOf<A>, FromBody, NoGradient> vjp = NoGradient{};
  if (passes_gradient)
    vjp = VjpOf<A>([](const A&, Vjp& g) {
      if (g.needs(0)) g.give(0, g.cotangent(0));
    });
  return define<A>({
      .name = name,
      .doc = doc,
      .infer =
          [](const A&, Infer& c) {
            c.need_count(1);
            c.out(c.in(0));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A&, EvalCall& c) { c.out[0].values = c.in[0].values; }),
      .vjp = std::move(vjp),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{onnx, 13},
      .samples =
          [](Samples& s) {
            for (const Shape& shape : {Shape{3, 17}, Shape{0}, Shape{}, Shape{1}, Shape{4097}})
              s.add(A{}, {{shape}});
            s.add(A{}, {ids({17}, -9, 9, DType::I64)}).gradient = false;
            s.add(A{}, {{{64}, Fill::Special}}, "special values").gradient = false;
          },
      .only_moves = true,
  });
}

}  // namespace

std::vector<OpDef> identity_ops() {
  return {copy_op("identity", "A copy.", true, "Identity"),
          copy_op("detach", "A copy that no gradient passes.", false, "")};
}

Tensor identity(Operand x) { return emit_one("identity", {}, {x}); }
Tensor detach(Operand x) { return emit_one("detach", {}, {x}); }

}  // namespace aloft
