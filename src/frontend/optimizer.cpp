#include "frontend/optimizer.h"

#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "frontend/module.h"

namespace aloft {
namespace {

VariablePtr new_variable(const std::string& name, DType dtype, const Shape& shape, StateClass cls) {
  auto v = std::make_shared<Variable>();
  v->name = name;
  v->type = {dtype, shape};
  v->cls = cls;
  v->requires_grad = false;
  nn::allocate(*v);
  return v;
}

}  // namespace

Optimizer::Optimizer(OptimizerSpec spec, std::vector<VariablePtr> parameters,
                     std::vector<VariablePtr> masters, scalar::ScalerRule scaler)
    : spec_(std::move(spec)), scaler_(scaler) {
  ensure(spec_.rule != nullptr, "an optimizer has an update rule");
  moments_.resize(spec_.rule->moments().size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const VariablePtr& p = parameters[i];
    if (!p->requires_grad) continue;
    parameters_.push_back(p);
    masters_.push_back(i < masters.size() ? masters[i] : nullptr);
    for (std::size_t k = 0; k < moments_.size(); ++k)
      moments_[k].push_back(new_variable("optim." + spec_.rule->moments()[k] + "." + p->name.str(),
                                         DType::F32, p->type.shape, StateClass::Optimizer));
  }
  if (parameters_.empty())
    throw UserError("E0801", "there is nothing to train")
        .need("at least one parameter that requires a gradient")
        .advice("unfreeze parameters with requires_grad(true, pattern)");
  applied = new_variable("optim.applied", DType::I64, {}, StateClass::Control);
  scale = new_variable("scaler.scale", DType::F32, {}, StateClass::Control);
  good_steps = new_variable("scaler.good_steps", DType::I32, {}, StateClass::Control);
  overflow_run = new_variable("scaler.overflow_run", DType::I32, {}, StateClass::Control);
  skipped = new_variable("scaler.skipped", DType::I64, {}, StateClass::Control);
  const scalar::ScalerState start = scalar::initial_state(scaler_);
  std::memcpy(scale->data, &start.scale, sizeof start.scale);
}

std::vector<VariablePtr> Optimizer::state() const {
  std::vector<VariablePtr> all;
  for (const VariablePtr& m : masters_)
    if (m) all.push_back(m);
  for (const auto& list : moments_) all.insert(all.end(), list.begin(), list.end());
  all.insert(all.end(), accumulators_.begin(), accumulators_.end());
  all.insert(all.end(), {applied, scale, good_steps, overflow_run, skipped});
  return all;
}

bool Optimizer::decays(std::size_t i) const {
  if (parameters_[i]->is_norm) return false;
  for (const std::string& pattern : spec_.no_decay)
    if (glob_match(pattern, parameters_[i]->name.str())) return false;
  return true;
}

void Optimizer::set_accumulation(int micro_batches) {
  if (micro_batches < 1)
    throw UserError("E0802",
                    "the number of accumulated micro-batches is " + std::to_string(micro_batches))
        .need("1 or more");
  accumulation_ = micro_batches;
  accumulators_.clear();
  if (micro_batches == 1) return;
  for (const VariablePtr& p : parameters_)
    accumulators_.push_back(new_variable("accumulated." + p->name.str(), DType::F32, p->type.shape,
                                         StateClass::Gradient));
}

}  // namespace aloft
