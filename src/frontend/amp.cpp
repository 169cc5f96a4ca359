#include "frontend/amp.h"

#include <algorithm>

#include "base/error.h"
#include "frontend/check_optimizer.h"
#include "frontend/eager.h"
#include "ops/op.h"
#include "precision/decide.h"
#include "scalar/float_formats.h"
#include "scalar/split_float.h"

namespace aloft::amp {
namespace {

// The master of a parameter that is still fp32: over the parameter's
// own memory, or what is left of it beside its bf16 form.
VariablePtr master_of(const Variable& parameter, MasterForm form) {
  auto m = std::make_shared<Variable>();
  m->name = std::string(kMasterPrefix) + parameter.name.str();
  m->type = parameter.type;
  m->cls = StateClass::Optimizer;
  m->requires_grad = false;
  if (form == MasterForm::F32) {
    m->data = parameter.data;
    m->memory = parameter.memory;
    return m;
  }
  const std::int64_t count = parameter.type.shape.max_numel();
  m->type = {DType::U8, {scalar::rest_bytes(count)}};
  if (!parameter.data) return m;  // a description stays one
  nn::allocate(*m);
  const auto* from = static_cast<const float*>(parameter.data);
  const scalar::Rests rests(static_cast<std::uint8_t*>(m->data), count);
#pragma omp parallel for schedule(static)
  for (std::int64_t byte = 0; byte < (count + 7) / 8; ++byte)
    for (std::int64_t i = 8 * byte; i < std::min(count, 8 * byte + 8); ++i)
      scalar::put_split(rests, i, from[i]);
  return m;
}

// Split masters stand beside bf16 weights, nowhere else.
void check_master(MasterForm form, const PrecisionRecipe& recipe) {
  if (form == MasterForm::F32) return;
  if (const std::string_view problem = split_master_problem(recipe); !problem.empty())
    throw UserError("E0815", "a split master does not fit this precision")
        .saw("precision '" + print_precision(recipe) + "': " + std::string(problem))
        .need("O2 with bf16 weights")
        .advice("precision O2:bf16, or master f32");
}

// A pattern that matches nothing would do nothing.
void check_patterns(const PrecisionRecipe& recipe, const std::vector<VariablePtr>& parameters) {
  std::vector<std::string> ops, names;
  for (const OpDef& op : op_table()) ops.push_back(op.name.str());
  for (const VariablePtr& p : parameters) names.push_back(p->name.str());
  const std::vector<RecipeMistake> mistakes = unmatched_patterns(recipe, ops, names);
  if (mistakes.empty()) return;
  UserError e("E0809", "a pattern of the precision matches nothing");
  for (const RecipeMistake& m : mistakes) e.add_line("saw", m.key + ": " + m.text);
  e.add_line("need", "the name of an op or of a parameter, with * for any letters");
  throw e;
}

// A master of a parameter that was frozen when the model was prepared, from what is stored.
VariablePtr late_master_of(const Variable& parameter, MasterForm form) {
  Variable wide = parameter;
  wide.type.dtype = DType::F32;
  if (!parameter.data) return master_of(wide, form);  // of a description
  nn::allocate(wide);
  auto* to = static_cast<float*>(wide.data);
  const auto widen = [&](const auto* from, auto widened) {
    for (std::int64_t i = 0; i < wide.type.shape.max_numel(); ++i) to[i] = widened(from[i]);
  };
  if (parameter.type.dtype == DType::BF16)
    widen(static_cast<const scalar::Bf16*>(parameter.data),
          [](scalar::Bf16 x) { return scalar::f32_of(x); });
  else
    widen(static_cast<const scalar::F16*>(parameter.data),
          [](scalar::F16 x) { return scalar::f32_of(x); });
  return master_of(wide, form);
}

// The same values rounded to a low type, in memory of their own.
void narrow(Variable& v, DType to) {
  const std::shared_ptr<void> held = v.memory;
  const auto* from = static_cast<const float*>(v.data);
  const std::int64_t count = v.type.shape.max_numel();
  v.type.dtype = to;
  if (!from) return;
  nn::allocate(v);
  ++v.version;
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
  check_master(spec.master, recipe);
  eager().let_go_of_variables();  // they move, and masters take over what they leave
  const std::vector<VariablePtr> parameters = model.parameters();
  for (const VariablePtr& p : parameters)
    if (p->type.dtype != DType::F32)
      throw UserError("E0805", "the model was already prepared for mixed precision")
          .saw("parameter '" + p->name.str() + "' is " + p->type.str())
          .advice("call amp::initialize once, on a fresh model");
  // Everything that can be refused is, before a parameter changes.
  const scalar::ScalerRule scaler = scaler_rule(recipe);
  check_optimizer(spec, parameters, scaler);
  check_patterns(recipe, parameters);
  for (const VariablePtr& p : parameters) {
    const WeightStorage w = weight_storage(p->name.str(), p->is_norm, recipe);
    const bool is_low_stored = w.stored != DType::F32;
    const bool has_master = w.has_master && is_low_stored && p->requires_grad;
    if (has_master) p->master = master_of(*p, spec.master);
    if (is_low_stored) narrow(*p, w.stored);
  }
  model.set_policy(print_precision(recipe));
  Optimizer optimizer(spec, parameters, scaler);
  optimizer.set_late_master([form = spec.master, recipe](const Variable& p) -> VariablePtr {
    const bool has_master = weight_storage(p.name.str(), p.is_norm, recipe).has_master;
    return has_master && p.type.dtype != DType::F32 ? late_master_of(p, form) : nullptr;
  });
  return optimizer;
}

}  // namespace aloft::amp
