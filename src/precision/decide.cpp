#include "precision/decide.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace aloft {
namespace {

Listing listing_of(const DecisionQuery& q, const PrecisionRecipe& r) {
  auto any_parameter = [&](const std::vector<std::string>& patterns) {
    return std::any_of(q.parameters.begin(), q.parameters.end(),
                       [&](std::string_view name) { return glob_match_any(patterns, name); });
  };
  if (glob_match_any(r.deny_ops, q.op) || any_parameter(r.deny_params)) return Listing::Denied;
  if (glob_match_any(r.allow_ops, q.op) || any_parameter(r.allow_params)) return Listing::Allowed;
  return Listing::Unlisted;
}

}  // namespace

std::string_view listed_parameter(std::span<const std::string_view> names,
                                  const PrecisionRecipe& recipe) {
  for (const auto* patterns : {&recipe.deny_params, &recipe.allow_params})
    for (std::string_view name : names)
      if (glob_match_any(*patterns, name)) return name;
  return {};
}

Decision decide(const DecisionQuery& q, const PrecisionRecipe& recipe) {
  ensure(recipe.is_resolved(), "an `auto` precision is resolved before it is used");
  Facts facts{.numeric = q.numeric,
              .phase = q.phase,
              .listing = listing_of(q, recipe),
              .is_loss = q.is_loss,
              .is_norm = q.is_norm,
              .level = recipe.level,
              .only_allowed = recipe.only_allowed,
              .is_layer_listed = recipe.layer_type(q.layer).has_value(),
              .low = recipe.type_in(q.phase, q.layer),
              .capability = q.capability};
  return decide_facts(with_inputs(facts, q.inputs));
}

WeightStorage weight_storage(std::string_view parameter, bool is_norm,
                             const PrecisionRecipe& recipe, const Capability& capability) {
  ensure(recipe.is_resolved(), "an `auto` precision is resolved before it is used");
  // Weights are read by the forward phase first: its type is the one worth storing.
  const std::string_view layer = layer_of_parameter(parameter);
  const DType low = recipe.type_in(Phase::Forward, layer);
  if (recipe.level == Level::O0) return {DType::F32, false, "O0: everything is f32"};
  if (recipe.level == Level::O1)
    return {DType::F32, false, "O1: weights stay f32 and are cast where an op wants them low"};
  if (!is_low(low))
    return {DType::F32, false,
            recipe.layer_type(layer) ? "the recipe keeps the layer in f32"
                                     : "the recipe keeps the forward phase in f32"};
  if (glob_match_any(recipe.deny_params, parameter))
    return {DType::F32, false, "the recipe denies it: f32"};
  if (!capability.stores(low)) return {DType::F32, false, text_of(Reason::NoLowType)};
  const bool has_master = recipe.level == Level::O2;
  if (glob_match_any(recipe.allow_params, parameter))
    return {low, has_master, "the recipe allows it: low"};
  if (is_norm && recipe.keeps_norms_fp32())
    return {DType::F32, false, "a norm's parameters are kept in f32"};
  if (has_master) return {low, true, "O2: low, with an f32 master in the optimizer"};
  return {low, false, "O3: low, without a master"};
}

std::string_view split_master_problem(const PrecisionRecipe& r) {
  if (!r.level_is_auto) {
    if (r.level == Level::O0) return "O0 keeps weights in f32, which are their own masters";
    if (r.level == Level::O1) return "O1 keeps weights in f32, which are their own masters";
    if (r.level == Level::O3) return "O3 has no masters";
  }
  const DType forward = r.forward.value_or(r.low_is_auto ? DType::BF16 : r.low);
  if (forward == DType::F16 || !r.fp16_layers.empty())
    return "fp16 weights are not the upper half of an fp32";
  if (forward == DType::F32) return "the forward phase is f32, and so are the weights";
  return "";
}

std::string_view stochastic_rounding_problem(const PrecisionRecipe& r) {
  if (!r.level_is_auto) {
    if (r.level < Level::O2) return "weights are f32, which lose no step";
    if (r.level == Level::O2) return "O2 has fp32 masters, which lose no step";
  }
  const DType forward = r.forward.value_or(r.low_is_auto ? DType::BF16 : r.low);
  if (forward == DType::F16 || !r.fp16_layers.empty())
    return "fp16 weights are rounded to nearest alone";
  if (forward == DType::F32) return "the forward phase is f32, and so are the weights";
  return "";
}

scalar::ScalerRule scaler_rule(const PrecisionRecipe& recipe) {
  ensure(recipe.is_resolved(), "an `auto` precision is resolved before it is used");
  if (recipe.scale == ScalePolicy::None) return scalar::no_scaler();
  if (recipe.scale != ScalePolicy::Auto) return recipe.scale_values;
  const bool half = recipe.type_in(Phase::Forward) == DType::F16 ||
                    recipe.type_in(Phase::Backward) == DType::F16 ||
                    (recipe.level != Level::O0 && !recipe.fp16_layers.empty());
  const bool scaled_level = recipe.level == Level::O1 || recipe.level == Level::O2;
  return half && scaled_level ? scalar::dynamic_scaler() : scalar::no_scaler();
}

}  // namespace aloft
