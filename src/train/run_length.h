// How long a run is: steps, or the passes over the training tokens that they make.
#pragma once

#include <cstdint>

#include "train/recipe.h"

namespace aloft {

// Tokens that an update trains on: batch x accumulate x context.
std::int64_t tokens_a_step(const Recipe& recipe);

// Passes over `train_tokens` tokens that train.steps make.
double epochs_of(const Recipe& recipe, std::uint64_t train_tokens);

// A recipe that counts in epochs gets the steps that hand out that many times every window of the
// data, rounded up and at least one; any other stays as it is.
void settle_length(Recipe& recipe, std::uint64_t train_tokens);

}  // namespace aloft
