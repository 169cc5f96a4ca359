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

void need_to_clip_by_norm(const char* what, const std::vector<VariablePtr>& parameters,
                          double max_norm) {
  need_eager(what);
  need_above_0("max_norm", max_norm);
  need_no_scale_to_clip(what, parameters);
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

void clip_by(const std::vector<VariablePtr>& parameters, double max_norm, const Tensor& norm) {
  const UpdatePhase phase;
  const Tensor n = cast(norm, DType::F32);
  // Infinity less itself is NaN: gradients of such a norm are none.
  const Tensor share = minimum(max_norm / (n + 1e-6), 1.0) + (n - n);
  for (const VariablePtr& p : parameters)
    if (const Tensor g = grad_of(p); g.is_defined())
      replace_gradient(p, cast(g, DType::F32) * share);
}
}  // namespace

// What a loop gives may be divided by a scale that it knows.
void set_grad(const VariablePtr& parameter, const Tensor& gradient) {
  replace_gradient(parameter, gradient);
  eager().forget_scales(parameter);
}

Tensor get_total_norm(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) {
    if (!t.is_defined()) continue;
    if (!is_float(t.dtype()))
      throw UserError("E0203", "the norm of a tensor that is no gradient")
          .saw(t.type().str() + " given to get_total_norm()")
          .need("floating tensors, as grad_of(parameter) gives them");
    all.push_back(t);
  }
  const UpdatePhase phase;
  if (all.empty()) return full(Shape{}, 0.0, DType::F32);
  return grad_stats(full(Shape{}, 1.0, DType::F32), all).norm;
}

void clip_grads_with_norm_(const std::vector<VariablePtr>& parameters, double max_norm,
                           const Tensor& total_norm) {
  need_to_clip_by_norm("clip_grads_with_norm_()", parameters, max_norm);
  if (!total_norm.is_defined() || total_norm.shape() != Shape{} || !is_float(total_norm.dtype()))
    throw UserError("E0203", "the norm to clip by is no number")
        .saw(total_norm.is_defined() ? total_norm.type().str() : "an undefined tensor")
        .need("a floating tensor of one number, shape []")
        .advice("get_total_norm(gradients) gives one");
  clip_by(parameters, max_norm, total_norm);
}

Tensor clip_grad_norm_(const std::vector<VariablePtr>& parameters, double max_norm) {
  need_to_clip_by_norm("clip_grad_norm_()", parameters, max_norm);
  std::vector<Tensor> gradients;
  for (const VariablePtr& p : parameters) gradients.push_back(grad_of(p));
  const Tensor norm = get_total_norm(gradients);
  clip_by(parameters, max_norm, norm);
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
