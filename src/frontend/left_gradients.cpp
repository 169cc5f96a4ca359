#include "frontend/left_gradients.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "frontend/premises.h"
#include "frontend/sums_scale.h"
#include "frontend/update_phase.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/constant.h"
#include "ops/grad_stats.h"
#include "ops/step_tensors.h"

namespace aloft {
namespace {

void need_eager(const char* what) {
  if (premises_of_trace())
    throw UserError("E0305", "a step with the gradients of backward() in a function that is traced")
        .saw(std::string(what) + " in a compiled function")
        .need("gradients of the function's own, which backward() cannot leave there")
        .advice("return minimize(loss, optimizer) from the function, or run eagerly");
}

void need_above_0(const char* what, double value) {
  if (!(value > 0) || std::isinf(value))
    throw UserError("E0814", std::string(what) + " is out of range")
        .saw(shortest(value))
        .need("a number above 0");
}

}  // namespace

void need_scaled(const std::vector<VariablePtr>& parameters, const VariablePtr& scale,
                 std::uint64_t since) {
  for (const VariablePtr& p : parameters) {
    if (!grad_of(p).is_defined()) continue;
    const std::string of = "a gradient of '" + p->name.str() + "'";
    if (!eager().gradient_comes_by(p, scale))
      throw UserError("E0808", "the gradients are not those of a scaled loss")
          .saw(of + " by a backward() without the loss scale that it would be divided by")
          .need(
              "amp::scale_loss(loss, optimizer).backward(), or scaler.scale(loss).backward() of "
              "the scaler that divides");
    if (eager().gradient_has_scale_besides(p, {&scale, 1}))
      throw UserError("E0808", "the gradients are multiplied with two loss scales")
          .saw(of + ", and a loss that another scaler has scaled, too")
          .need("one scaler for each loss")
          .advice(
              "scaler.scale(loss) of the loss itself; GradScaler(optimizer) is over the scale "
              "that amp::initialize gave the optimizer");
    if (eager().gradient_is_scaled_twice(p))
      throw UserError("E0808", "the gradients are multiplied twice with a loss scale")
          .saw(of +
               " of a loss that was scaled before scaler.scale(), by it or by the block of "
               "amp::scale_loss()")
          .need("scaler.scale(loss) of the loss itself, once")
          .advice("optimizer.zero_grad() drops the gradients");
    const std::uint64_t version = eager().gradient_version(p, scale);
    if (version == EagerEmitter::kDivided)
      throw UserError("E0808", "the gradients are divided by the loss scale already")
          .saw(of + ", by unscale_() of another optimizer, or before an update()")
          .need("each parameter in one optimizer, and update() behind the steps");
    if (since > 0 && (version < since || version > scale->version))
      throw UserError("E0808",
                      "the gradients are multiplied with a loss scale that has moved since")
          .saw(of + ", and an update() of the scale, or another state, behind its backward()")
          .need("the steps of all optimizers before update(), and zero_grad() behind it");
  }
}

void need_no_scale(const std::vector<VariablePtr>& parameters) {
  for (const VariablePtr& p : parameters)
    if (eager().gradient_has_scale_besides(p, {}))
      throw UserError("E0808", "the gradients are multiplied with a loss scale of another step")
          .saw("a gradient of '" + p->name.str() + "' of a loss that a scaler has scaled")
          .need("scaler.step(optimizer) of that scaler, or scaler.unscale_(optimizer) before it")
          .advice("optimizer.zero_grad() drops what other losses have left");
}

void need_divided(const std::vector<VariablePtr>& parameters, const VariablePtr& scale) {
  for (const VariablePtr& p : parameters)
    if (grad_of(p).is_defined() && eager().gradient_version(p, scale) != EagerEmitter::kDivided)
      throw UserError("E0808", "gradients came behind unscale_(), which nothing divides")
          .saw("a backward() to '" + p->name.str() + "' between unscale_() and step()")
          .need("every backward() of the step before unscale_()");
}

namespace {
// A limit is one of the gradients themselves, not of what a loss scale makes of them.
void need_no_scale_to_clip(const char* what, const std::vector<VariablePtr>& parameters) {
  for (const VariablePtr& p : parameters)
    if (eager().gradient_has_scale_besides(p, {}))
      throw UserError("E0808", std::string(what) + " of gradients that a loss scale is in")
          .saw("a gradient of '" + p->name.str() + "' of a loss that a scaler has scaled")
          .need("gradients that are divided by it")
          .advice(
              "call scaler.unscale_(optimizer) first, or clip behind the block of "
              "amp::scale_loss(), or have the step do it: clip_norm and clip_value of the "
              "optimizer");
}

void replace_gradient(const VariablePtr& parameter, const Tensor& gradient) {
  need_eager("set_grad()");
  const Tensor before = grad_of(parameter);
  if (!before.is_defined())
    throw UserError("E0808", "there is no gradient to replace")
        .saw("'" + parameter->name.str() + "', for which backward() has left none")
        .need("a backward() before it");
  if (gradient.shape() != parameter->type.shape || !is_float(gradient.dtype()) ||
      gradient.dtype() == DType::F64)
    throw UserError("E0807", "a gradient is not like its parameter")
        .saw(gradient.type().str() + " for '" + parameter->name.str() + "', " +
             parameter->type.str())
        .need("f32, bf16 or f16 of the parameter's shape");
  eager().replace_gradient(parameter, gradient);
}
}  // namespace

// What a loop gives may be divided by a scale that it knows.
void set_grad(const VariablePtr& parameter, const Tensor& gradient) {
  replace_gradient(parameter, gradient);
  eager().forget_scales(parameter);
}

Tensor clip_grad_norm_(const std::vector<VariablePtr>& parameters, double max_norm) {
  need_eager("clip_grad_norm_()");
  need_above_0("max_norm", max_norm);
  need_no_scale_to_clip("clip_grad_norm_()", parameters);
  std::vector<VariablePtr> owners;
  std::vector<Tensor> gradients;
  for (const VariablePtr& p : parameters)
    if (const Tensor g = grad_of(p); g.is_defined()) {
      owners.push_back(p);
      gradients.push_back(g);
    }
  const UpdatePhase phase;
  if (gradients.empty()) return full(Shape{}, 0.0, DType::F32);
  const Tensor norm = grad_stats(full(Shape{}, 1.0, DType::F32), gradients).norm;
  // Infinity less itself is NaN: gradients of such a norm are none.
  const Tensor share = minimum(max_norm / (norm + 1e-6), 1.0) + (norm - norm);
  for (std::size_t i = 0; i < owners.size(); ++i)
    replace_gradient(owners[i], cast(gradients[i], DType::F32) * share);
  return norm;
}

void clip_grad_value_(const std::vector<VariablePtr>& parameters, double most) {
  need_eager("clip_grad_value_()");
  need_above_0("the largest value", most);
  need_no_scale_to_clip("clip_grad_value_()", parameters);
  for (const VariablePtr& p : parameters)
    if (const Tensor g = grad_of(p); g.is_defined()) {
      const UpdatePhase phase;
      replace_gradient(p, clamp(g, -most, most));
    }
}

namespace {
// What leaves the gradients that a step looks for.
const char* first_call(const Optimizer& optimizer, bool is_scaled) {
  if (!is_scaled) return "call loss.backward() first";
  if (own_scale(optimizer))
    return "call amp::scale_loss(loss, optimizer).backward(), or scaler.scale(loss).backward() of "
           "GradScaler(optimizer), first";
  return "call scaler.scale(loss).backward() first";
}
}  // namespace

std::vector<Tensor> left_gradients(Optimizer& whole, const VariablePtr* scale,
                                   std::uint64_t since) {
  need_eager("amp::step() or GradScaler");
  const Optimizer& optimizer = whole.trained();
  std::vector<Tensor> all;
  bool any = false;
  for (const VariablePtr& p : optimizer.parameters()) {
    all.push_back(grad_of(p));
    any = any || all.back().is_defined();
  }
  if (!any)
    throw UserError("E0808", "there are no gradients to step with")
        .need("a backward() before every step")
        .advice(first_call(optimizer, scale != nullptr));
  if (scale) need_scaled(optimizer.parameters(), *scale, since);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].is_defined()) {
      const TensorType& type = optimizer.parameters()[i]->type;
      all[i] = full(type.shape, 0.0, type.dtype);
    }
  return all;
}

}  // namespace aloft
