// What a recipe needs of memory: at least, known before anything is made of it; and to the byte, by
// its plan.
#pragma once

#include <cstdint>

#include "plan/plan.h"
#include "recipe/recipe.h"

namespace aloft {

// What makes a run need less.
inline constexpr const char* kLessMemory =
    "a smaller train.batch (with train.accumulate), data.length or model, or a lower precision";

// Bytes: weights, gradients and the optimizer's state to the byte; of the activations only what
// every block keeps for its gradient. `of_data`: what the data says, where it is known.
double least_memory(const Recipe& recipe, const SettingValues& of_data);

// EnvironmentError E0401 where the machine does not have that.
void need_memory_for(const Recipe& recipe, const SettingValues& of_data);
// The same of what the plan holds, with the advice for those who can change it; and a warning where
// it is more than is free now. `copy`: bytes of a copy of the state for checkpoints besides.
void need_memory_for(const Plan& plan, std::string_view advice = kLessMemory, std::size_t copy = 0);
// Whether there can be such a copy besides; says so where there cannot, and the plan alone fits.
bool is_room_for_copy(const Plan& plan, std::size_t copy);
// Warns where either is so. Whether the machine has that at all.
bool warn_of_memory_for(const Plan& plan, std::string_view advice = kLessMemory,
                        std::size_t copy = 0);

}  // namespace aloft
