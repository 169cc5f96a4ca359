// What run.json and metrics.jsonl say of a recipe and of a validation loss.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "train/recipe.h"
#include "train/validation_loss.h"

namespace aloft {

// Every key of the resolved recipe.
nlohmann::json json_of(const Recipe& recipe);

// {"val_loss": 3.01, "val_perplexity": 20.3, "val_bits_per_byte": 1.35}; what is not finite is
// null, what is not known is absent.
nlohmann::json json_of(const ValidationLoss& loss);

}  // namespace aloft
