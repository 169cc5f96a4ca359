#include "frontend/amp.h"

#include <cstring>

#include "base/error.h"
#include "ops/host_array.h"
#include "precision/decide.h"

namespace aloft::amp {
namespace {

// The same values in another element type, in memory of their own.
void convert(Variable& v, DType to) {
  HostArray a = HostArray::zeros(v.type.dtype, v.type.shape.max_extents());
  if (!a.values.empty()) load_bytes(a, v.data);
  v.type.dtype = a.dtype = to;
  nn::allocate(v);
  if (!a.values.empty()) store_bytes(a, v.data);
}

VariablePtr master_of(const Variable& parameter) {
  auto m = std::make_shared<Variable>();
  m->name = "optim.master." + parameter.name.str();
  m->type = parameter.type;
  m->cls = StateClass::Optimizer;
  m->requires_grad = false;
  nn::allocate(*m);
  std::memcpy(m->data, parameter.data, parameter.type.max_bytes());
  return m;
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
    masters.push_back(w.has_master && p->requires_grad ? master_of(*p) : nullptr);
    if (w.stored != DType::F32) convert(*p, w.stored);
  }
  model.set_policy(print_precision(recipe));
  return Optimizer(spec, parameters, masters, scaler_rule(recipe));
}

}  // namespace aloft::amp
