#include "frontend/optimizer.h"

#include <algorithm>
#include <cmath>
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

void check_number(const char* what, const std::optional<double>& value) {
  if (value && !(std::isfinite(*value) && *value >= 0))
    throw UserError("E0814", std::string("a parameter group's ") + what + " is out of range")
        .saw(std::to_string(*value))
        .need("0 or more, and finite");
}

// Each pattern matches a parameter, frozen ones included: one that matches none is a typing error.
void check_groups(const std::vector<ParameterGroup>& groups,
                  const std::vector<VariablePtr>& parameters) {
  std::vector<std::string> names;
  names.reserve(parameters.size());
  for (const VariablePtr& p : parameters) names.push_back(p->name.str());
  for (const ParameterGroup& group : groups) {
    check_number("learning rate", group.lr);
    check_number("weight decay", group.weight_decay);
    if (group.parameters.empty())
      throw UserError("E0809", "a parameter group matches no parameter")
          .saw("no pattern")
          .need("at least one, such as \"*.bias\"");
    for (const std::string& pattern : group.parameters) {
      if (std::any_of(names.begin(), names.end(),
                      [&](const std::string& name) { return glob_match(pattern, name); }))
        continue;
      const std::string near = nearest_name(pattern, names);
      throw UserError("E0809", "a parameter group matches no parameter")
          .saw("pattern " + in_quotes(pattern))
          .need("the name of a parameter, with * for any letters")
          .advice("parameters here are named like " + in_quotes(near.empty() ? names[0] : near));
    }
  }
}

// Both would have to know all gradients before the first parameter changes.
void check_early(const OptimizerSpec& spec, const scalar::ScalerRule& scaler) {
  if (spec.update == UpdateTime::Late) return;
  std::string seen;
  if (spec.clip_norm > 0) seen = "clip_norm = " + std::to_string(spec.clip_norm);
  if (scaler.kind != scalar::ScalerKind::None)
    seen += (seen.empty() ? "" : ", ") + std::string("a loss scale that is ") +
            std::string(scalar::name_of(scaler.kind));
  if (seen.empty()) return;
  throw UserError("E0816", "an early update can neither clip nor skip a step")
      .saw(seen)
      .need("clip_norm 0 and no loss scale")
      .advice("update late, or train in bf16 or f32 without clipping");
}

}  // namespace

Optimizer::Optimizer(OptimizerSpec spec, const std::vector<VariablePtr>& parameters,
                     scalar::ScalerRule scaler)
    : spec_(std::move(spec)), scaler_(scaler) {
  ensure(spec_.rule != nullptr, "an optimizer has an update rule");
  moments_.resize(spec_.rule->moments().size());
  for (const VariablePtr& p : parameters) {
    if (!p->requires_grad) continue;
    parameters_.push_back(p);
    for (std::size_t k = 0; k < moments_.size(); ++k)
      moments_[k].push_back(new_variable("optim." + spec_.rule->moments()[k] + "." + p->name.str(),
                                         DType::F32, p->type.shape, StateClass::Optimizer));
  }
  if (parameters_.empty())
    throw UserError("E0801", "there is nothing to train")
        .need("at least one parameter that requires a gradient")
        .advice("unfreeze parameters with model.requires_grad(true, pattern)");
  check_groups(spec_.groups, parameters);
  check_early(spec_, scaler_);
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
