// Types as recipes write them, for what people read.
#pragma once

#include <string>
#include <string_view>

#include "precision/recipe.h"
#include "types/dtype.h"

namespace aloft {

// "bf16", "fp16", and "fp32" for all else.
constexpr std::string_view recipe_word(DType type) {
  return type == DType::BF16 ? "bf16" : type == DType::F16 ? "fp16" : "fp32";
}

// The text with fp16 and fp32 for the words f16 and f32: "f32 as bf16x6" -> "fp32 as bf16x6".
std::string in_recipe_words(std::string_view text);

// print_precision() so: "O2:fp16 backward=fp32"; patterns stay as they are.
std::string shown_precision(const PrecisionRecipe& recipe);

}  // namespace aloft
