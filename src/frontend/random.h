// The random state: {seed, step, micro-batch}, a variable like any other. Ops that draw numbers
// take it as an operand; the training step advances it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "graph/tensor.h"
#include "runtime/observer.h"
#include "types/variable.h"

namespace aloft {

// This thread's random state on its current device; i64[3].
const VariablePtr& random_state();
// Starts this thread's over, on every device: {seed, 0, 0}.
void manual_seed(std::uint64_t seed);
std::uint64_t current_seed();  // the one that this thread was given last
// The numbers of the state as they are.
std::array<std::int64_t, 3> random_numbers();
void set_random_numbers(const std::array<std::int64_t, 3>& numbers);
// The state was set from outside (a seed, a step that is undone), perhaps to what it was: what is
// drawn from here on is numbered anew, as by a thread that has drawn nothing yet.
void begin_draws();
// Calls of begin_draws() on this thread so far.
std::uint64_t draws_begun();

// The step and micro-batch of the state.
LoopPlace loop_place();

// A number for this thread's step and micro-batch: another one once they have advanced.
std::int64_t random_position();

// values[i] = deviation * the i-th normal number of the seed and `identity`, drawn by the back
// end's kernel of random_normal, so in parallel; the same numbers on any number of threads.
void draw_normal(std::string_view identity, double deviation, float* values, std::int64_t count);

// Emits the random state's update: next step (micro-batch 0), or next micro-batch.
void advance_step();
void advance_micro_batch();

}  // namespace aloft
