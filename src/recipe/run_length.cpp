#include "recipe/run_length.h"

#include <algorithm>
#include <cmath>

namespace aloft {

std::int64_t windows_of(const Recipe& recipe, std::uint64_t train_tokens) {
  if (train_tokens == 0) return 0;
  return static_cast<std::int64_t>((train_tokens - 1) /
                                   static_cast<std::uint64_t>(tokens_an_example(recipe)));
}

std::int64_t windows_a_step(const Recipe& recipe) {
  return recipe.train.batch * recipe.train.accumulate;
}

std::int64_t tokens_a_step(const Recipe& recipe) {
  return windows_a_step(recipe) * units_an_example(recipe);
}

double epochs_of(const Recipe& recipe, std::uint64_t examples, RunPlace place) {
  const auto windows = static_cast<double>(examples);
  if (windows == 0) return 0;
  const auto left = static_cast<double>(recipe.train.steps - place.step);
  const auto a_step = static_cast<double>(windows_a_step(recipe));
  return (static_cast<double>(place.windows) + left * a_step) / windows;
}

void settle_length(Recipe& recipe, std::uint64_t examples, RunPlace place) {
  if (recipe.train.epochs <= 0) return;
  // Whole windows, so that a run that goes on with the batch it had ends where it would have.
  const double windows = std::ceil(recipe.train.epochs * static_cast<double>(examples));
  const double left = std::max(0.0, windows - static_cast<double>(place.windows));
  const double steps = static_cast<double>(place.step) +
                       std::ceil(left / static_cast<double>(windows_a_step(recipe)));
  constexpr double kMost = 1e15;  // train.steps itself takes no more
  recipe.train.steps = static_cast<std::int64_t>(std::clamp(steps, 1.0, kMost));
  recipe.origin["train.steps"] = "train.epochs";
}

}  // namespace aloft
