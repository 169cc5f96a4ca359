// How long a run is: steps, or the passes over the training tokens that they make.
#pragma once

#include <cstdint>

#include "recipe/recipe.h"

namespace aloft {

// How far a run has come: updates made, and windows handed out for them.
struct RunPlace {
  std::int64_t step = 0;
  std::uint64_t windows = 0;
};

// Tokens that an update trains on: batch x accumulate x context.
std::int64_t tokens_a_step(const Recipe& recipe);
std::int64_t windows_a_step(const Recipe& recipe);
// Those of an epoch of tokens, as data/order.h cuts them.
std::int64_t windows_of(const Recipe& recipe, std::uint64_t train_tokens);

// Passes over `examples` windows or samples that train.steps make, of which `place` is behind the
// run.
double epochs_of(const Recipe& recipe, std::uint64_t examples, RunPlace place = {});

// A recipe that counts in epochs gets the steps that hand out that many times every window of the
// data, rounded up and at least one; any other stays as it is. A run that has come to `place` with
// batches of another size gets the steps that it has made and those that hand out the rest.
void settle_length(Recipe& recipe, std::uint64_t examples, RunPlace place = {});

}  // namespace aloft
