// What an optimizer's step adds to the values of a tile, for whoever takes statistics of it.
#pragma once

#include <cstdint>

#include "backends/cpu/update/update_tile.h"

namespace aloft::cpu {

// The tile's values before its step, as f32: those at `from`, split masters put together.
void read_values(const UpdateTile& tile, float* to);
// change[i] = after[i] - before[i] of n; `change` may be one of the others.
void subtract(const float* after, const float* before, float* change, std::int64_t n);

}  // namespace aloft::cpu
