// [optimizer]: what it begins with, and what it means for the library.
#include "recipe/recipe.h"

namespace aloft {

OptimizerSection::OptimizerSection() { begin_with(optim::optimizer_kind(optim::kUsualOptimizer)); }

void OptimizerSection::begin_with(const optim::OptimizerKind& other) {
  kind = other.name;
  lr = other.usual_lr;
  options = optim::usual_settings(other);
  rest = other.usual_rest;
}

UpdateRule optimizer_rule(const OptimizerSection& o) {
  const optim::OptimizerKind* kind = optim::find_optimizer_kind(o.kind);
  return kind && !kind->misfit(o.options) ? kind->rule(o.options) : UpdateRule();
}

OptimizerSpec optimizer_spec(const Recipe& r) {
  const OptimizerSection& o = r.optimizer;
  OptimizerSpec spec;
  spec.rule = optimizer_rule(o);
  spec.lr = o.lr;
  spec.weight_decay = o.weight_decay;
  spec.maximize = o.maximize;
  spec.clip_norm = o.clip_norm;
  spec.clip_adaptive = o.clip_adaptive;
  spec.clip_value = o.clip_value;
  spec.schedule = schedule_rule(r);
  spec.decay = {.norms = false, .without = o.no_decay};
  spec.groups = o.groups;
  spec.rest = o.rest;
  spec.update = o.update == "early" ? UpdateTime::Early : UpdateTime::Late;
  spec.master = state_format_named(o.master).value_or(StateFormat::F32);
  spec.average = {.kind = average_named(o.average).value_or(AverageKind::None),
                  .decay = o.average_decay,
                  .from = o.average_from};
  spec.states = state_format_named(o.states).value_or(StateFormat::F32);
  if (o.rounding == name_of(Rounding::Stochastic)) spec.rounding = Rounding::Stochastic;
  return spec;
}

}  // namespace aloft
