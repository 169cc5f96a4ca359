// What run.json and checkpoints say of a recipe.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "recipe/recipe.h"

namespace aloft {

// Every key of the resolved recipe.
nlohmann::json json_of(const Recipe& recipe);

}  // namespace aloft
