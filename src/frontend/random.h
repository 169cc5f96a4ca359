// The random state: {seed, step, micro-batch}, a variable like any other. Ops that draw numbers
// take it as an operand; the training step advances it.
#pragma once

#include <cstdint>

#include "graph/tensor.h"
#include "types/variable.h"

namespace aloft {

// This thread's random state; i64[3].
const VariablePtr& random_state();
// Starts over: {seed, 0, 0}.
void manual_seed(std::uint64_t seed);
std::uint64_t current_seed();

// Emits the random state's update: next step (micro-batch 0), or next micro-batch.
void advance_step();
void advance_micro_batch();

}  // namespace aloft
