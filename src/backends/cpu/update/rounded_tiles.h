// Tiles of f32 that are rounded at random as they are put away (scalar/stochastic_rounding.h).
#pragma once

#include <cstdint>

#include "scalar/block_float.h"
#include "scalar/float_formats.h"

namespace aloft::cpu {

// `words` are those of the slot's stream, one an element.
void round_tile_at_random(const float* tile, const std::uint32_t* words, int slot, scalar::Bf16* to,
                          std::int64_t n);

// Blocks begin at the tile's first element.
void write_blocks(const float* tile, const std::uint32_t* words, int slot, scalar::BlockForm form,
                  const scalar::Blocks& blocks, std::int64_t n);

}  // namespace aloft::cpu
