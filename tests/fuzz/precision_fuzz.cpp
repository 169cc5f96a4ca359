// Precision recipes from any bytes, as text and as JSON: a recipe that prints and parses back, or a
// list of mistakes; never an exception.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json.h"
#include "precision/decide.h"
#include "precision/recipe.h"
#include "precision/recipe_json.h"

namespace {

void must(bool ok) {
  if (!ok) __builtin_trap();
}

void check(const aloft::PrecisionRecipe& recipe) {
  aloft::PrecisionRecipe without_reason = recipe;
  without_reason.auto_reason.clear();
  std::vector<aloft::RecipeMistake> mistakes;
  must(aloft::parse_precision(aloft::print_precision(recipe), mistakes) == without_reason);
  must(aloft::precision_of_json(aloft::json_of(recipe), mistakes) == recipe);
  must(mistakes.empty());
  if (!recipe.is_resolved()) return;
  const aloft::DType input = aloft::DType::BF16;
  must(aloft::decide({.op = "matmul", .inputs = {&input, 1}}, recipe).applies);
  must(problem_of(aloft::scaler_rule(recipe)).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<aloft::RecipeMistake> mistakes;
  aloft::PrecisionRecipe recipe = aloft::parse_precision(text, mistakes);
  if (mistakes.empty()) check(recipe);

  const nlohmann::json json = aloft::parse_json(text);
  if (json.is_discarded()) return 0;
  mistakes.clear();
  recipe = aloft::precision_of_json(json, mistakes);
  if (mistakes.empty()) check(recipe);
  return 0;
}
