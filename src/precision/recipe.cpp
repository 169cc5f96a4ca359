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
                                              std::span<const std::string> parameter_names) {
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
  return out;
}

PrecisionRecipe resolve_auto(PrecisionRecipe recipe, Level level, DType low, std::string reason) {
  ensure(is_low(low), "the low type is bf16 or f16");
  if (recipe.level_is_auto) recipe.level = level;
  if (recipe.low_is_auto) recipe.low = low;
  if (!recipe.is_resolved()) recipe.auto_reason = std::move(reason);
  recipe.level_is_auto = recipe.low_is_auto = false;
  return recipe;
}

}  // namespace aloft
