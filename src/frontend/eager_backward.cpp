// What backward() leaves for parameters in eager mode: a gradient for each, added to those before,
// until a step takes them or somebody forgets them.
#include <algorithm>

#include "autodiff/history.h"
#include "base/error.h"
#include "frontend/eager_emitter.h"
#include "frontend/eager_taps.h"
#include "frontend/hooks.h"
#include "frontend/loss_scale_uses.h"
#include "frontend/variable_values.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"

namespace aloft {

namespace {

bool is_in(const std::vector<VariablePtr>& list, const VariablePtr& v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

}  // namespace

void EagerEmitter::backward(const Tensor& loss) {
  hooks::need_outside("backward()");
  check_target(loss);
  const History history(tape_, cell(loss).id);
  std::vector<VariablePtr> variables;
  VersionsRead others;
  for (std::uint32_t n : tape_.states()) {
    const EagerCell& c = *values_.at({n, 0});
    if (!history.holds(n)) continue;
    if (!is_trainable(*c.variable)) {
      std::uint64_t& version = others.emplace(c.variable, c.version).first->second;
      if (version != c.version) version = kNoVersion;
    } else if (!is_in(variables, c.variable)) {
      variables.push_back(c.variable);
    }
  }
  const std::vector<VariablePtr> scales = loss_scales_of(loss, history);
  const bool is_scaled_twice = std::ranges::adjacent_find(scales) != scales.end();
  Where where = current_where();
  EmitterScope scope(*this);
  const std::vector<Tensor> grads =
      variable_gradients(loss, full(Shape{}, 1.0, DType::F32), variables, where);
  std::erase_if(gradients_, [](const auto& left) { return left.first.expired(); });
  for (std::size_t i = 0; i < variables.size(); ++i) {
    LeftGradient& left = gradients_[variables[i]];
    if (left.sum.is_defined()) {
      std::erase_if(left.by, [&](const auto& one) { return !others.contains(one.first); });
      for (auto& [variable, version] : left.by)
        if (version != others.at(variable)) version = kNoVersion;
      left.sum = sum_of_gradients(left.sum, grads[i]);
      if (taps_) taps_->added_up(*this, variables[i], left.sum);
    } else {
      left = {grads[i], others};
    }
    left.scales.insert(scales.begin(), scales.end());
    left.is_scaled_twice = left.is_scaled_twice || is_scaled_twice;
  }
}

std::vector<VariablePtr> EagerEmitter::loss_scales_of(const Tensor& loss,
                                                      const History& history) const {
  std::map<std::uint32_t, VariablePtr> reads;
  for (std::uint32_t n : tape_.states())
    if (const VariablePtr& v = values_.at({n, 0})->variable; is_loss_scale(*v)) reads[n] = v;
  return loss_scales_on(tape_, history, cell(loss).id, reads);
}

void EagerEmitter::forget_gradients(std::span<const VariablePtr> variables) {
  if (gradients_.empty()) return;
  for (const VariablePtr& v : variables)
    if (const auto it = gradients_.find(v); it != gradients_.end()) gradients_.erase(it);
}

// As accumulate() adds those of micro-batches: in f32.
Tensor EagerEmitter::sum_of_gradients(const Tensor& a, const Tensor& b) {
  const NoGrad no_grad;
  EmitterScope emitter_scope(*this);
  Scope scope(where_values_are_added(current_where()));
  const DType type = cell(a).type.dtype == DType::F64 ? DType::F64 : DType::F32;
  const auto of = [&](const Tensor& t) { return cast(Tensor(this, t.id(), t.held()), type); };
  CellPtr c = copy_of(cell(add(of(a), of(b))));
  c->lost = Lost::Parameters;
  c->first_use = std::max(cell(a).first_use, cell(b).first_use);
  leave_unrecorded(*c);
  return wrap(c);
}

void EagerEmitter::replace_gradient(const VariablePtr& variable, const Tensor& gradient) {
  Tensor& left = gradients_.at(variable).sum;
  CellPtr c = copy_of(cell(gradient));
  c->lost = Lost::Parameters;
  c->first_use = cell(left).first_use;
  leave_unrecorded(*c);
  left = wrap(c);
}

void EagerEmitter::put_back_gradient(const VariablePtr& variable, const Tensor& gradient,
                                     const VariablePtr& by) {
  gradients_[variable] = {gradient, {{by, kDivided}}};
}

bool EagerEmitter::gradient_comes_by(const VariablePtr& of, const VariablePtr& by) const {
  const auto it = gradients_.find(of);
  return it != gradients_.end() && it->second.by.contains(by);
}

std::uint64_t EagerEmitter::gradient_version(const VariablePtr& of, const VariablePtr& by) const {
  return gradient_comes_by(of, by) ? gradients_.find(of)->second.by.find(by)->second : kNoVersion;
}

void EagerEmitter::note_divided(const VariablePtr& parameter) {
  LeftGradient& left = gradients_.at(parameter);
  for (auto& [variable, version] : left.by) version = kDivided;
  left.scales.clear();
  left.is_scaled_twice = false;
}

void EagerEmitter::forget_scales(const VariablePtr& parameter) {
  LeftGradient& left = gradients_.at(parameter);
  left.scales.clear();
  left.is_scaled_twice = false;
}

bool EagerEmitter::gradient_has_scale_besides(const VariablePtr& of,
                                              std::span<const VariablePtr> known) const {
  const auto it = gradients_.find(of);
  return it != gradients_.end() && std::ranges::any_of(it->second.scales, [&](const auto& scale) {
           return std::ranges::find(known, scale.lock()) == known.end();
         });
}

bool EagerEmitter::gradient_is_scaled_twice(const VariablePtr& of) const {
  const auto it = gradients_.find(of);
  return it != gradients_.end() && it->second.is_scaled_twice;
}

Tensor EagerEmitter::gradient_of(const VariablePtr& variable) const {
  const auto it = gradients_.find(variable);
  return it == gradients_.end() ? Tensor() : it->second.sum;
}

}  // namespace aloft
