#include "ops/adam_update.h"

#include <cmath>

#include "ops/op.h"
#include "ops/update_ops.h"

namespace aloft {
namespace {

using A = AdamUpdateAttrs;

void infer(const A& a, Infer& c) {
  c.check(a.beta1 >= 0 && a.beta1 < 1 && a.beta2 >= 0 && a.beta2 < 1, "a beta is out of range",
          "0 <= beta < 1");
  c.check(a.eps >= 0, "eps is " + std::to_string(a.eps), "0 or more");
  infer_update(a.layout(), a.decay, c);
}

void evaluate(const A& a, EvalCall& c) {
  const double lr = c.in[UpdateLayout::kLr][0];
  const double step = c.in[UpdateLayout::kApplied][0] + 1;
  const double correction1 = 1 - std::pow(a.beta1, step);
  const double correction2 = std::sqrt(1 - std::pow(a.beta2, step));
  evaluate_update(a.layout(), a.decay, c, [&](UpdateElement& e, bool decays) {
    double g = e.gradient;
    if (decays && a.decoupled) e.value *= 1 - lr * a.weight_decay;
    if (decays && !a.decoupled) g += a.weight_decay * e.value;
    e.moment[0] += (1 - a.beta1) * (g - e.moment[0]);
    e.moment[1] = a.beta2 * e.moment[1] + (1 - a.beta2) * g * g;
    e.value -= lr / correction1 * e.moment[0] / (std::sqrt(e.moment[1]) / correction2 + a.eps);
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
  one({.decoupled = false, .weight_decay = 0.125}, f32, bf16, true, 9);
  one({.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}, f32, f16, true, 100000);
  one({.has_master = true, .weight_decay = 0.125}, bf16, bf16, true, 3);
  one({.has_master = true}, f16, f16, false, 3);
  one({.has_master = true, .decoupled = false, .weight_decay = 0.125}, f16, f32, true, 0);
  one({.weight_decay = 0.125}, bf16, bf16, true, 3);
  one({.has_master = true, .split_master = true}, bf16, bf16, false, 3);
  one({}, f32, f32, false, 0);
}

}  // namespace

std::vector<OpDef> adam_update_ops() {
  return {define<A>({
      .name = "adam_update",
      .doc = "One step of torch.optim.Adam or AdamW (Kingma and Ba 2014; Loshchilov and Hutter "
             "2017) for a list of tensors: g = multiplier * gradient; decoupled decay multiplies "
             "p by 1 - lr * weight_decay, L2 decay adds weight_decay * p to g; m += (1 - beta1) * "
             "(g - m); v = beta2 * v + (1 - beta2) * g^2; p -= lr / (1 - beta1^t) * m / (sqrt(v) / "
             "sqrt(1 - beta2^t) + eps) with t = applied + 1. The result is computed from the fp32 "
             "master where there is one and rounded into the parameter. Where finite is 0 every "
             "output equals its input.",
      .infer = infer,
      .numeric = Numeric::Exact,
      .meaning = Eval<A>(evaluate),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(5, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  })};
}

UpdateResults adam_update(const UpdateOperands& operands, AdamUpdateAttrs attrs) {
  attrs.count = static_cast<std::int64_t>(operands.parameters.size());
  attrs.has_master = !operands.masters.empty();
  attrs.split_master = attrs.has_master && operands.masters[0].dtype() == DType::U8;
  return emit_update("adam_update", to_attrs(attrs), operands);
}

}  // namespace aloft
