#include "frontend/amp.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "frontend/check_optimizer.h"
#include "frontend/eager_emitter.h"
#include "ops/op.h"
#include "precision/decide.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"
#include "scalar/float_formats.h"
#include "scalar/split_float.h"

namespace aloft::amp {
namespace {

// body(i) for i in [0, count) on the host's threads, in pieces that are multiples of 8.
template <class Body>
void in_pieces(std::int64_t count, const Body& body) {
  constexpr std::int64_t kPiece = 1 << 14;
  host_threads().for_each((count + kPiece - 1) / kPiece, [&](std::int64_t piece) {
    for (std::int64_t i = kPiece * piece; i < std::min(count, kPiece * (piece + 1)); ++i) body(i);
  });
}

// The master of a parameter that is still fp32: over the parameter's
// own memory, or what is left of it beside its bf16 form.
VariablePtr master_of(const Variable& parameter, StateFormat form) {
  auto m = std::make_shared<Variable>();
  m->name = std::string(kMasterPrefix) + parameter.name.str();
  m->type = parameter.type;
  m->cls = StateClass::Optimizer;
  m->requires_grad = false;
  if (form == StateFormat::F32) {
    m->buffer = parameter.buffer;
    return m;
  }
  const std::int64_t count = parameter.type.shape.max_numel();
  m->type = {DType::U8, {scalar::rest_bytes(count)}};
  m->layout = Layout::SplitRests;
  if (!parameter.buffer) return m;  // a description stays one
  nn::allocate(*m);
  const auto from = parameter.buffer->read<float>();
  const auto to = m->buffer->write<std::uint8_t>();
  const scalar::Rests rests(to.data(), count);
  in_pieces(count, [&](std::int64_t i) { scalar::put_split(rests, i, from[i]); });
  return m;
}

// Split masters stand beside bf16 weights, nowhere else.
void check_master(StateFormat form, const PrecisionRecipe& recipe) {
  if (form != StateFormat::Split) return;
  if (const std::string_view problem = split_master_problem(recipe); !problem.empty())
    throw UserError("E0815", "a split master does not fit this precision")
        .saw("precision '" + print_precision(recipe) + "': " + std::string(problem))
        .need("O2 with bf16 weights")
        .advice("precision O2:bf16, or master f32");
}

// What has a master, or is fp32, loses no step; fp16 is rounded to nearest.
void check_rounding(Rounding rounding, const PrecisionRecipe& recipe) {
  if (rounding == Rounding::Nearest) return;
  if (const std::string_view problem = stochastic_rounding_problem(recipe); !problem.empty())
    throw UserError("E0815", "there is nothing to round at random under this precision")
        .saw("precision '" + print_precision(recipe) + "': " + std::string(problem))
        .need("O3 with bf16 weights")
        .advice("precision O3:bf16, or rounding = Rounding::Nearest");
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
VariablePtr late_master_of(const Variable& parameter, StateFormat form) {
  Variable wide = parameter;
  wide.type.dtype = DType::F32;
  if (!parameter.buffer) return master_of(wide, form);  // of a description
  nn::allocate(wide);
  const auto widen = [&]<class Low>(Low) {
    const auto from = parameter.buffer->read<Low>();
    const auto to = wide.buffer->write<float>();
    for (std::int64_t i = 0; i < wide.type.shape.max_numel(); ++i) to[i] = scalar::f32_of(from[i]);
  };
  if (parameter.type.dtype == DType::BF16)
    widen(scalar::Bf16{});
  else
    widen(scalar::F16{});
  return master_of(wide, form);
}

// The same values rounded to a low type, in memory of their own.
void narrow(Variable& v, DType to) {
  const std::shared_ptr<Buffer> wide = v.buffer;
  const std::int64_t count = v.type.shape.max_numel();
  v.type.dtype = to;
  if (!wide) return;
  nn::allocate(v);
  ++v.version;
  const auto from = wide->read<float>();
  const auto round = [&]<class Low>(Low, auto rounded) {
    const auto out = v.buffer->write<Low>();
    in_pieces(count, [&](std::int64_t i) { out[i] = rounded(from[i]); });
  };
  if (to == DType::BF16)
    round(scalar::Bf16{}, [](float x) { return scalar::bf16_of(x); });
  else
    round(scalar::F16{}, [](float x) { return scalar::f16_of(x); });
}

// A parameter that is still fp32 in the type that the recipe stores it in, with a master where the
// recipe has one and a format of masters is named.
void store(Variable& p, std::optional<StateFormat> masters, const PrecisionRecipe& recipe,
           const Capability& capability) {
  const WeightStorage w = weight_storage(p.name.str(), p.is_norm, recipe, capability);
  const bool is_low_stored = w.stored != DType::F32;
  const bool has_master = w.has_master && is_low_stored && p.requires_grad;
  if (has_master && masters) p.master = master_of(p, *masters);
  if (is_low_stored) narrow(p, w.stored);
}

// The parameters of a model that may be prepared.
std::vector<VariablePtr> fresh_parameters(nn::Module& model, const PrecisionRecipe& recipe) {
  if (!recipe.is_resolved())
    throw UserError("E0804", "'auto' precision must be resolved before a model is prepared")
        .advice("name a level, or let the recipe's trainer measure");
  std::vector<VariablePtr> parameters = model.parameters();
  for (const VariablePtr& p : parameters)
    if (p->type.dtype != DType::F32)
      throw UserError("E0805", "the model was already prepared for mixed precision")
          .saw("parameter '" + p->name.str() + "' is " + p->type.str())
          .advice("call amp::initialize once, on a fresh model");
  return parameters;
}

// Keeps parameters as the recipe stores them; with masters where a form of them is named.
void store(nn::Module& model, const std::vector<VariablePtr>& parameters,
           const PrecisionRecipe& recipe, std::optional<StateFormat> masters) {
  const Capability capability = current_device().features().capability;
  for (const VariablePtr& p : parameters) store(*p, masters, recipe, capability);
  model.set_policy(Policy(recipe));
}

}  // namespace

void prepare(nn::Module& model, const PrecisionRecipe& recipe) {
  const std::vector<VariablePtr> parameters = fresh_parameters(model, recipe);
  check_patterns(recipe, parameters);
  eager().let_go_of_variables();  // they move
  store(model, parameters, recipe, std::nullopt);
}

Optimizer prepare(nn::Module& model, const OptimizerSpec& spec, const PrecisionRecipe& recipe) {
  const std::vector<VariablePtr> parameters = fresh_parameters(model, recipe);
  check_master(spec.master, recipe);
  check_rounding(spec.rounding, recipe);
  eager().let_go_of_variables();  // they move, and masters take over what they leave
  // Everything that can be refused is, before a parameter changes.
  const scalar::ScalerRule scaler = scaler_rule(recipe);
  check_optimizer(spec, parameters, scaler);
  check_patterns(recipe, parameters);
  store(model, parameters, recipe, spec.master);
  const Capability capability = current_device().features().capability;
  Optimizer optimizer(spec, parameters, scaler);
  optimizer.set_late_storage([form = spec.master, recipe, capability](Variable& p) {
    store(p, form, recipe, capability);
  });
  optimizer.set_late_master([form = spec.master, recipe,
                             capability](const Variable& p) -> VariablePtr {
    const bool has_master = weight_storage(p.name.str(), p.is_norm, recipe, capability).has_master;
    return has_master && p.type.dtype != DType::F32 ? late_master_of(p, form) : nullptr;
  });
  return optimizer;
}

}  // namespace aloft::amp
