// Low types that a precision names and the device lacks: what would be of them is f32 there, so
// that a run computes other numbers than on a device that has them. Checkpoints say which; a run
// goes on where the same are missing.
#pragma once

#include <string>
#include <vector>

#include "frontend/module.h"
#include "precision/recipe.h"
#include "types/capability.h"

namespace aloft {

// "bf16" where there are no buffers of it, "products of bf16" where only those are missing. The
// recipe is resolved.
std::vector<std::string> missing_types(const PrecisionRecipe& recipe, const Capability& here);

// Those of every precision in the model, on the current device.
std::vector<std::string> missing_types(const nn::Module& model);

// What is missing in one place alone: "bf16 is missing here, and was not where ...". Empty where
// nothing is.
std::vector<std::string> type_differences(const std::vector<std::string>& before,
                                          const std::vector<std::string>& now);

// For a run that goes on; `before` is of the checkpoint, `device` the name of the one that it ran
// on, "" where it is not known. UserError E0817.
void refuse_other_types(const std::vector<std::string>& before, const std::vector<std::string>& now,
                        const std::string& device);

}  // namespace aloft
