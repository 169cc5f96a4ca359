#include "ops/sgd_update.h"

#include "ops/op.h"
#include "ops/update_ops.h"

namespace aloft {
namespace {

using A = SgdUpdateAttrs;

void infer(const A& a, Infer& c) {
  c.check(!a.nesterov || (a.momentum > 0 && a.dampening == 0),
          "nesterov needs a momentum and no dampening", "momentum > 0 and dampening = 0");
  infer_update(a.layout(), a.decay, c);
}

void evaluate(const A& a, EvalCall& c) {
  const double lr = c.in[UpdateLayout::kLr][0];
  const bool first = c.in[UpdateLayout::kApplied][0] == 0;
  evaluate_update(a.layout(), a.decay, c, [&](UpdateElement& e, bool decays) {
    double g = e.gradient;
    if (decays && a.weight_decay != 0) g += a.weight_decay * e.value;
    if (a.momentum != 0) {
      e.moment[0] = first ? g : a.momentum * e.moment[0] + (1 - a.dampening) * g;
      g = a.nesterov ? g + a.momentum * e.moment[0] : e.moment[0];
    }
    e.value -= lr * g;
  });
}

void samples(Samples& s) {
  const auto one = [&](A a, DType p, DType g, bool finite, std::int64_t applied) {
    a.count = 5;
    a.decay = {1, 0, 1, 1, 0};
    s.add(a, update_sample(a.layout(), p, g, finite, applied)).gradient = false;
  };
  const auto [f32, bf16, f16] = std::tuple{DType::F32, DType::BF16, DType::F16};
  one({}, f32, f32, true, 0);
  one({.weight_decay = 0.125}, f32, f32, true, 3);
  one({.momentum = 0.875}, f32, f32, true, 0);
  one({.momentum = 0.875, .dampening = 0.5, .weight_decay = 0.125}, f32, bf16, true, 3);
  one({.momentum = 0.875, .nesterov = true}, f32, f16, true, 3);
  one({.momentum = 1e-60}, f32, f32, true, 0);  // 0 in f32, and kept all the same
  one({.has_master = true, .momentum = 0.875}, bf16, bf16, true, 3);
  one({.has_master = true, .momentum = 0.875}, f16, f16, false, 3);
  one({.momentum = 0.875, .weight_decay = 0.125}, bf16, bf16, true, 3);
  one({.has_master = true}, f16, f32, true, 3);
  one({.has_master = true, .momentum = 0.875, .split_master = true}, bf16, f32, false, 3);
  one({}, f32, f32, false, 0);
}

}  // namespace

std::vector<OpDef> sgd_update_ops() {
  return {define<A>({
      .name = "sgd_update",
      .doc = "One step of torch.optim.SGD for a list of tensors: g = multiplier * gradient, plus "
             "weight_decay * p where it decays; momentum m = momentum * m + (1 - dampening) * g "
             "(m = g in the first update); p -= lr * m, or lr * (g + momentum * m) with nesterov. "
             "The result is computed from the fp32 master where there is one and rounded into the "
             "parameter. Where finite is 0 every output equals its input.",
      .infer = infer,
      .numeric = Numeric::Exact,
      .meaning = Eval<A>(evaluate),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(3, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  })};
}

UpdateResults sgd_update(const UpdateOperands& operands, SgdUpdateAttrs attrs) {
  attrs.count = static_cast<std::int64_t>(operands.parameters.size());
  attrs.has_master = !operands.masters.empty();
  attrs.split_master = attrs.has_master && operands.masters[0].dtype() == DType::U8;
  return emit_update("sgd_update", to_attrs(attrs), operands);
}

}  // namespace aloft
