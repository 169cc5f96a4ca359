// Tiles of f32 that stand for what an update keeps in other types: read before the formula runs,
// written behind it. What is rounded at random on its way back: rounded_tiles.h.
#pragma once

#include "backends/cpu/update/update_tile.h"

namespace aloft::cpu {

// Whether the formula may read or write the values where they lie.
inline bool reads_in_place(const UpdateTile& tile) {
  return tile.from_type == DType::F32 && !tile.words;
}
inline bool writes_in_place(const UpdateTile& tile) {
  return tile.to_type == DType::F32 && !tile.new_words;
}

void read_gradient(const UpdateTile& tile, float* to);
// The tile's values: those at `from`, split masters put together.
void read_values(const UpdateTile& tile, float* to);
void read_state(const UpdateTile& tile, int which, float* to);
// Where they are not written in place.
void write_values(const UpdateTile& tile, const float* values);
// The rounded copy at `low`.
void write_low(const UpdateTile& tile, const float* values);

}  // namespace aloft::cpu
