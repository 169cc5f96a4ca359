#include "frontend/optimizer.h"

#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "frontend/check_optimizer.h"
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

Optimizer::Optimizer(OptimizerSpec spec, const std::vector<VariablePtr>& parameters,
                     scalar::ScalerRule scaler)
    : spec_(std::move(spec)), scaler_(scaler) {
  check_optimizer(spec_, parameters, scaler_);
  moments_.resize(spec_.rule->moments().size());
  for (const VariablePtr& p : parameters) {
    if (!p->requires_grad) continue;
    parameters_.push_back(p);
    for (std::size_t k = 0; k < moments_.size(); ++k)
      moments_[k].push_back(new_variable("optim." + spec_.rule->moments()[k] + "." + p->name.str(),
                                         DType::F32, p->type.shape, StateClass::Optimizer));
  }
  applied = new_variable("optim.applied", DType::I64, {}, StateClass::Control);
  scale = new_variable("scaler.scale", DType::F32, {}, StateClass::Control);
  good_steps = new_variable("scaler.good_steps", DType::I32, {}, StateClass::Control);
  overflow_run = new_variable("scaler.overflow_run", DType::I32, {}, StateClass::Control);
  skipped = new_variable("scaler.skipped", DType::I64, {}, StateClass::Control);
  const scalar::ScalerState start = scalar::initial_state(scaler_);
  if (scale->data) std::memcpy(scale->data, &start.scale, sizeof start.scale);
}

std::vector<VariablePtr> Optimizer::state() const {
  std::vector<VariablePtr> all;
  for (const VariablePtr& p : parameters_)
    if (p->master) all.push_back(p->master);
  for (const auto& list : moments_) all.insert(all.end(), list.begin(), list.end());
  all.insert(all.end(), accumulators_.begin(), accumulators_.end());
  all.insert(all.end(), {applied, scale, good_steps, overflow_run, skipped});
  return all;
}

const ParameterGroup* Optimizer::group(std::size_t i) const {
  for (const ParameterGroup& group : spec_.groups)
    if (glob_match_any(group.parameters, parameters_[i]->name.str())) return &group;
  return nullptr;
}

bool Optimizer::decays(std::size_t i) const {
  if (const ParameterGroup* own = group(i); own && own->weight_decay) return true;
  if (parameters_[i]->is_norm && !spec_.decay.norms) return false;
  return !glob_match_any(spec_.decay.without, parameters_[i]->name.str());
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
