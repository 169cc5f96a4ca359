#include "frontend/amp.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "base/text.h"
#include "frontend/averaged_weights.h"
#include "frontend/check_optimizer.h"
#include "frontend/eager_emitter.h"
#include "frontend/layer_names.h"
#include "frontend/loss_scales.h"
#include "frontend/prepare_frozen.h"
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
void check_patterns(const PrecisionRecipe& recipe, const std::vector<nn::Module*>& models,
                    const std::vector<VariablePtr>& parameters) {
  std::vector<std::string> ops, names, layers;
  for (nn::Module* model : models)
    for (std::string& layer : layer_names(*model)) layers.push_back(std::move(layer));
  for (const OpDef& op : op_table()) ops.push_back(op.name.str());
  for (const VariablePtr& p : parameters) names.push_back(p->name.str());
  const std::vector<RecipeMistake> mistakes = unmatched_patterns(recipe, ops, names, layers);
  if (mistakes.empty()) return;
  UserError e("E0809", "a pattern of the precision matches nothing");
  for (const RecipeMistake& m : mistakes) e.add_line("saw", m.key + ": " + m.text);
  e.add_line("need", "the name of an op, of a parameter or of a layer, with * for any letters");
  if (recipe.lists_layers()) e.add_line("try", "layers here: " + some_of(layers));
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

// What becomes of frozen parameters: they are stored as the others are, or stay f32 where the
// others have masters.
enum class Frozen : std::uint8_t { AsOthers, AsTheyWere };

// A parameter that is still fp32 in the type that the recipe stores it in, with a master where the
// recipe has one and a format of masters is named.
void store(Variable& p, std::optional<StateFormat> masters, const PrecisionRecipe& recipe,
           const Capability& capability, Frozen frozen = Frozen::AsOthers) {
  const WeightStorage w = weight_storage(p.name.str(), p.is_norm, recipe, capability);
  const bool is_low_stored = w.stored != DType::F32;
  const bool has_master = w.has_master && is_low_stored && p.requires_grad;
  if (has_master && masters) p.master = master_of(p, *masters);
  if (frozen == Frozen::AsTheyWere && w.has_master && !p.requires_grad) return;
  if (is_low_stored) narrow(p, w.stored);
}

void need_resolved(const PrecisionRecipe& recipe) {
  if (!recipe.is_resolved())
    throw UserError("E0804", std::string(recipe.layers_are_auto ? "'adaptive'" : "'auto'") +
                                 " precision must be resolved before a model is prepared")
        .advice(
            "name a level, or what a run of `aloft train` has chosen: the line \"policy\" of its "
            "run.json");
}

// The parameters of models that may be prepared.
std::vector<VariablePtr> fresh_parameters(const std::vector<nn::Module*>& models,
                                          const PrecisionRecipe& recipe) {
  need_resolved(recipe);
  std::vector<VariablePtr> all;
  const auto refuse = [](const std::string& saw) {
    throw UserError("E0805", "the model was already prepared for mixed precision")
        .saw(saw)
        .advice("call amp::initialize once, on a fresh model");
  };
  for (nn::Module* model : models) {
    for (const VariablePtr& p : model->parameters()) {
      if (p->type.dtype != DType::F32)
        refuse("parameter '" + p->name.str() + "' is " + p->type.str());
      all.push_back(p);
    }
    if (model->policy()) refuse("its precision: " + model->policy().str());
  }
  return all;
}

// What each optimizer trains.
std::vector<std::vector<VariablePtr>> shared_out(const std::vector<nn::Module*>& models,
                                                 const std::vector<OptimizerFor>& optimizers) {
  std::vector<std::vector<VariablePtr>> out;
  std::size_t named = 0;
  for (const OptimizerFor& o : optimizers) {
    named += !o.parameters.empty();
    out.push_back(o.parameters);
  }
  if (named == 0 && optimizers.size() == 1) {
    for (nn::Module* model : models)
      for (const VariablePtr& p : model->parameters()) out[0].push_back(p);
  } else if (named == 0 && optimizers.size() == models.size()) {
    for (std::size_t i = 0; i < models.size(); ++i) out[i] = models[i]->parameters();
  } else if (named < optimizers.size()) {
    throw UserError("E0807", "what the optimizers train is not known")
        .saw(std::to_string(optimizers.size()) + " optimizers, " + std::to_string(named) +
             " of which name parameters, for " + std::to_string(models.size()) + " models")
        .need("one for all models, one for each, or parameters for each optimizer")
        .advice("amp::OptimizerFor(optim::Adam{}, parameters)");
  }
  return out;
}

// Each parameter is some model's, and has one optimizer, which makes its master.
void check_shares(const std::vector<std::vector<VariablePtr>>& shares,
                  const std::vector<VariablePtr>& parameters) {
  const std::set<VariablePtr> known(parameters.begin(), parameters.end());
  std::set<VariablePtr> taken;
  for (const auto& share : shares) {
    for (const VariablePtr& p : share)
      if (p && (!known.contains(p) || taken.contains(p)))
        throw UserError("E0807", known.contains(p) ? "a parameter has two optimizers"
                                                   : "an optimizer trains a parameter of no model")
            .saw("'" + p->name.str() + "'")
            .need("parameters of the models, each with one optimizer");
    taken.insert(share.begin(), share.end());
  }
}

Optimizer made(const OptimizerSpec& spec, const std::vector<VariablePtr>& parameters,
               const PrecisionRecipe& recipe, const Capability& capability) {
  Optimizer optimizer(spec, parameters, scaler_rule(recipe));
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

// Blocks of amp::scale_loss ask whether they are.
void note_initialized(const std::vector<Optimizer>& all) {
  for (const Optimizer& optimizer : all) optimizer.loss_scales().is_initialized = true;
}

// Optimizers of models that stay as they are.
std::vector<Optimizer> plain(const std::vector<OptimizerFor>& optimizers,
                             const std::vector<std::vector<VariablePtr>>& shares) {
  std::vector<Optimizer> all;
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    all.emplace_back(optimizers[i].spec, shares[i], scalar::no_scaler());
  note_initialized(all);
  return all;
}

std::vector<Optimizer> prepare(const std::vector<nn::Module*>& models,
                               const std::vector<OptimizerFor>& optimizers,
                               const PrecisionRecipe& recipe, std::size_t losses, Frozen frozen) {
  // Everything that can be refused is, before a parameter changes.
  const std::vector<VariablePtr> parameters = fresh_parameters(models, recipe);
  const auto shares = shared_out(models, optimizers);
  check_shares(shares, parameters);
  for (const OptimizerFor& o : optimizers) {
    check_master(o.spec.master, recipe);
    check_rounding(o.spec.rounding, recipe);
  }
  need_own_values(parameters, "a model is given a precision");
  eager().let_go_of_variables();  // they move, and masters take over what they leave
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    check_optimizer(optimizers[i].spec, shares[i], scaler_rule(recipe));
  check_patterns(recipe, models, parameters);
  const Capability capability = current_device().features().capability;
  std::map<VariablePtr, StateFormat> masters;
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    for (const VariablePtr& p : shares[i]) masters[p] = optimizers[i].spec.master;
  for (const VariablePtr& p : parameters) {
    const auto form = masters.find(p);
    store(*p, form == masters.end() ? std::nullopt : std::optional(form->second), recipe,
          capability, frozen);
  }
  for (nn::Module* model : models) model->set_policy(Policy(recipe));
  std::vector<Optimizer> all;
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    all.push_back(made(optimizers[i].spec, shares[i], recipe, capability));
  if (all.size() > 1 || losses > 1) {
    const auto scales = std::make_shared<LossScales>(scaler_rule(recipe), losses);
    for (Optimizer& optimizer : all) optimizer.share(scales);
  }
  note_initialized(all);
  return all;
}

}  // namespace

std::vector<Optimizer> prepare(const std::vector<nn::Module*>& models,
                               const std::vector<OptimizerFor>& optimizers,
                               const PrecisionRecipe& recipe, std::size_t losses) {
  return prepare(models, optimizers, recipe, losses, Frozen::AsOthers);
}

std::vector<Optimizer> prepare(const std::vector<nn::Module*>& models,
                               const std::vector<OptimizerFor>& optimizers,
                               const Options& options) {
  const Resolved r = resolve(options);
  if (!r.enabled) return plain(optimizers, shared_out(models, optimizers));
  std::vector<Optimizer> all = prepare(models, optimizers, r.recipe, r.num_losses);
  if (options.verbosity > 0) {
    print_talk(describe(options));
    for (const Optimizer& optimizer : all) optimizer.loss_scales().says_overflows = true;
  }
  if (const Level level = r.recipe.level;
      options.combine_grad.value_or(false) && (level == Level::O0 || level == Level::O3))
    log_warning(
        "amp::initialize: combine_grad changes nothing at {}, where apex's fork does not take it: "
        "gradients are read in one sweep at every level",
        name_of(level));
  return all;
}

void prepare(nn::Module& model, const PrecisionRecipe& recipe) { prepare({&model}, {}, recipe, 1); }

Optimizer prepare(nn::Module& model, const OptimizerSpec& spec, const PrecisionRecipe& recipe) {
  return prepare({&model}, {OptimizerFor(spec)}, recipe, 1)[0];
}

Optimizer prepare_with_frozen(nn::Module& model, const OptimizerSpec& spec,
                              const PrecisionRecipe& recipe) {
  return prepare({&model}, {OptimizerFor(spec)}, recipe, 1, Frozen::AsTheyWere)[0];
}

}  // namespace aloft::amp
