// Which key of a recipe somebody meant who wrote another: a slip of the finger, a key without its
// section, or the word that other programs have for it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "train/recipe_fields.h"

namespace aloft {

// "lr", "learning_rate" and "train.lr" give "optimizer.lr", "train.bach" gives "train.batch",
// "steps" gives "train.steps or schedule.steps"; "" where nothing is near.
std::string meant_key(std::string_view written, std::span<const RecipeField> fields);

}  // namespace aloft
