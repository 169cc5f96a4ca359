// Inside: a model of a run, whose frozen parameters stay to the bit what they were.
#pragma once

#include "frontend/module.h"
#include "frontend/optimizer.h"
#include "optim/spec.h"
#include "precision/recipe.h"

namespace aloft::amp {

// amp::prepare(), but at O2, where what is trained has an f32 master, parameters that are frozen
// stay f32, too, and are cast where an op reads them. For models of which nothing is unfrozen.
Optimizer prepare_with_frozen(nn::Module& model, const OptimizerSpec& spec,
                              const PrecisionRecipe& recipe);

}  // namespace aloft::amp
