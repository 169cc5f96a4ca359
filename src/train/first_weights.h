// The weights that a run begins with where its recipe names a folder of Hugging Face.
#pragma once

#include <string>
#include <vector>

#include "frontend/module.h"
#include "recipe/recipe.h"

namespace aloft {

// Those of model.init; nothing where the recipe has none. Returns what the folder lacks, such as a
// head, which stays as it is. DataError and UserError as of models::open_huggingface() and
// load_huggingface().
std::vector<std::string> load_first_weights(const Recipe& recipe, nn::Module& model);

}  // namespace aloft
