// Whether a run has memory for a copy of its state, from which checkpoints are written while it
// trains (train.checkpoint_copy), and how much: what the run reserves is what is forecast.
#pragma once

#include <cstddef>

#include "frontend/optimizer.h"
#include "nn/layer.h"
#include "plan/plan.h"
#include "recipe/recipe.h"

namespace aloft {

// Bytes, of a run of the recipe on the current device with such a plan; 0: none. Model and
// optimizer may be described only. Warns where the machine has no memory for one.
std::size_t checkpoint_copy_bytes(const Recipe& recipe, const nn::Layer& model,
                                  const Optimizer& optimizer, const Plan& plan);

}  // namespace aloft
