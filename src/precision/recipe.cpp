#include "precision/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace aloft {

DType PrecisionRecipe::type_in(Phase phase) const {
  if (level == Level::O0 || phase == Phase::Update) return DType::F32;
  return (phase == Phase::Forward ? forward : backward).value_or(low);
}

std::optional<DType> PrecisionRecipe::layer_type(std::string_view layer) const {
  const std::string_view name = listed_layer(layer);
  if (glob_match_any(fp32_layers, name)) return DType::F32;
  if (glob_match_any(bf16_layers, name)) return DType::BF16;
  if (glob_match_any(fp16_layers, name)) return DType::F16;
  return std::nullopt;
}

PrecisionRecipe PrecisionRecipe::in_layer(std::string_view layer) const {
  const std::optional<DType> type = layer_type(layer);
  PrecisionRecipe own = *this;
  own.fp32_layers.clear();
  own.bf16_layers.clear();
  own.fp16_layers.clear();
  if (type == DType::F32) {
    own.fp32_layers = {"*"};
  } else if (type) {
    own.low = *type;
    own.forward = own.backward = std::nullopt;
  }
  return own;
}

DType PrecisionRecipe::type_in(Phase phase, std::string_view layer) const {
  if (level == Level::O0 || phase == Phase::Update) return DType::F32;
  return layer_type(layer).value_or(type_in(phase));
}

std::string_view layer_of_parameter(std::string_view parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : parameter.substr(0, dot);
}

std::optional<DType> parse_float_type(std::string_view text) {
  const std::string word = lower(trim(text));
  auto is_one_of = [&](auto... names) { return ((word == names) || ...); };
  if (is_one_of("f32", "fp32", "float32", "float")) return DType::F32;
  if (is_one_of("f16", "fp16", "float16", "half")) return DType::F16;
  if (is_one_of("bf16", "bfloat16")) return DType::BF16;
  return std::nullopt;
}

std::optional<Level> parse_level(std::string_view text) {
  const std::string word = lower(trim(text));
  if (word.size() != 2 || word[0] != 'o' || word[1] < '0' || word[1] > '3') return std::nullopt;
  return static_cast<Level>(word[1] - '0');
}

std::vector<RecipeMistake> unmatched_patterns(const PrecisionRecipe& recipe,
                                              std::span<const std::string> op_names,
                                              std::span<const std::string> parameter_names,
                                              std::span<const std::string> layer_names) {
  std::vector<RecipeMistake> out;
  auto check = [&](const char* key, const std::vector<std::string>& patterns,
                   std::span<const std::string> names, const char* what) {
    const std::vector<std::string> known(names.begin(), names.end());
    for (const std::string& pattern : patterns) {
      if (std::any_of(names.begin(), names.end(),
                      [&](const std::string& name) { return glob_match(pattern, name); }))
        continue;
      const std::string near = nearest_name(pattern, known);
      out.push_back(
          {key, fmt::format("{} matches no {}{}", in_quotes(pattern, 60), what,
                            near.empty() ? "" : fmt::format(": did you mean \"{}\"?", near))});
    }
  };
  check("allow_ops", recipe.allow_ops, op_names, "op");
  check("deny_ops", recipe.deny_ops, op_names, "op");
  check("allow_params", recipe.allow_params, parameter_names, "parameter");
  check("deny_params", recipe.deny_params, parameter_names, "parameter");
  check("fp32_layers", recipe.fp32_layers, layer_names, "layer");
  check("bf16_layers", recipe.bf16_layers, layer_names, "layer");
  check("fp16_layers", recipe.fp16_layers, layer_names, "layer");
  return out;
}

PrecisionRecipe resolve_auto(PrecisionRecipe recipe, const PrecisionRecipe& chosen,
                             std::string reason) {
  ensure(is_low(chosen.low), "the low type is bf16 or f16");
  if (recipe.is_resolved()) return recipe;
  if (recipe.level_is_auto || recipe.layers_are_auto) recipe.level = chosen.level;
  if (recipe.low_is_auto || recipe.layers_are_auto) recipe.low = chosen.low;
  const auto add = [](std::vector<std::string>& to, const std::vector<std::string>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  add(recipe.fp32_layers, chosen.fp32_layers);
  add(recipe.bf16_layers, chosen.bf16_layers);
  add(recipe.fp16_layers, chosen.fp16_layers);
  recipe.auto_reason = std::move(reason);
  recipe.level_is_auto = recipe.low_is_auto = recipe.layers_are_auto = false;
  recipe.error_budget = kErrorBudget;
  return recipe;
}

}  // namespace aloft
