#include "frontend/amp.h"

#include "base/error.h"
#include "precision/decide.h"
#include "scalar/float_formats.h"

namespace aloft::amp {
namespace {

// A fp32 variable under the optimizer's name for it, over the parameter's own memory.
VariablePtr master_of(const Variable& parameter) {
  auto m = std::make_shared<Variable>();
  m->name = "optim.master." + parameter.name.str();
  m->type = parameter.type;
  m->cls = StateClass::Optimizer;
  m->requires_grad = false;
  m->data = parameter.data;
  m->memory = parameter.memory;
  return m;
}

// The same values rounded to a low type, in memory of their own.
void narrow(Variable& v, DType to) {
  const std::shared_ptr<void> held = v.memory;
  const auto* from = static_cast<const float*>(v.data);
  const std::int64_t count = v.type.shape.max_numel();
  v.type.dtype = to;
  nn::allocate(v);
  const auto round = [&](auto* out, auto rounded) {
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < count; ++i) out[i] = rounded(from[i]);
  };
  if (to == DType::BF16)
    round(static_cast<scalar::Bf16*>(v.data), [](float x) { return scalar::bf16_of(x); });
  else
    round(static_cast<scalar::F16*>(v.data), [](float x) { return scalar::f16_of(x); });
}

}  // namespace

Optimizer prepare(nn::Module& model, const OptimizerSpec& spec, const PrecisionRecipe& recipe) {
  if (!recipe.is_resolved())
    throw UserError("E0804", "'auto' precision must be resolved before a model is prepared")
        .advice("name a level, or let the recipe's trainer measure");
  const std::vector<VariablePtr> parameters = model.parameters();
  std::vector<VariablePtr> masters;
  for (const VariablePtr& p : parameters) {
    if (p->type.dtype != DType::F32)
      throw UserError("E0805", "the model was already prepared for mixed precision")
          .saw("parameter '" + p->name.str() + "' is " + p->type.str())
          .advice("call amp::initialize once, on a fresh model");
    const WeightStorage w = weight_storage(p->name.str(), p->is_norm, recipe);
    const bool is_low_stored = w.stored != DType::F32;
    masters.push_back(w.has_master && is_low_stored && p->requires_grad ? master_of(*p) : nullptr);
    if (is_low_stored) narrow(*p, w.stored);
  }
  model.set_policy(print_precision(recipe));
  return Optimizer(spec, parameters, masters, scaler_rule(recipe));
}

}  // namespace aloft::amp
