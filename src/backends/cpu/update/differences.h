// What an optimizer's step adds to the values of a tile, for whoever takes statistics of it.
#pragma once

#include "backends/cpu/update/piece_statistics.h"
#include "backends/cpu/update/update_tile.h"

namespace aloft::cpu {

// Adds the statistics of what the tile's values have become more, in f32, than they were `before`.
void add_changes(const UpdateTile& after, const float* before, StatisticsInLanes& to);

}  // namespace aloft::cpu
