// A precision recipe as JSON: a table of the recipe file, or what run.json records.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "precision/recipe.h"

namespace aloft {

// Reads as much as it can and appends every mistake it finds; the result means nothing when it
// found one. precision_of_json(json_of(r)) == r.
PrecisionRecipe precision_of_json(const nlohmann::json& json, std::vector<RecipeMistake>& mistakes);
nlohmann::json json_of(const PrecisionRecipe& recipe);

}  // namespace aloft
