// Which key of a recipe somebody meant who wrote another: a slip of the finger, a key without its
// section, or the word that other programs have for it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "recipe/recipe_fields.h"

namespace aloft {

// The keys of that very name, or the one that other programs call so: "lr" and "learning-rate" give
// "optimizer.lr", "steps" gives "train.steps or schedule.steps"; "" where there is none.
std::string named_key(std::string_view written, std::span<const RecipeField> fields);

// named_key(), else the nearest: "train.bach" gives "train.batch"; "" where nothing is near.
std::string meant_key(std::string_view written, std::span<const RecipeField> fields);

// "gpt2, llama and 2 more": families of models with the key, "model.layers"; "" where none has it.
std::string families_with(std::string_view key);

}  // namespace aloft
