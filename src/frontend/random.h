// The random state: {seed, step, micro-batch}, a variable like any other. Ops that draw numbers
// take it as an operand; the training step advances it.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/tensor.h"
#include "types/variable.h"

namespace aloft {

// This thread's random state; i64[3].
const VariablePtr& random_state();
// Starts over: {seed, 0, 0}.
void manual_seed(std::uint64_t seed);
std::uint64_t current_seed();
// Calls of manual_seed() so far: who numbers draws begins anew behind each, also where the state is
// then set to what it was before.
std::uint64_t times_seeded();

// values[i] = deviation * the i-th normal number of the seed and `identity`, drawn by the back
// end's kernel of random_normal, so in parallel; the same numbers on any number of threads.
void draw_normal(std::string_view identity, double deviation, float* values, std::int64_t count);

// Emits the random state's update: next step (micro-batch 0), or next micro-batch.
void advance_step();
void advance_micro_batch();

}  // namespace aloft
