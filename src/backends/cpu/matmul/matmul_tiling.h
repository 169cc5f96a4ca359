// How a matrix product is cut: pure functions of its shape and kind. What decides the order of
// summation, and so the bits, never depends on the number of threads.
#pragma once

#include <cstdint>

#include "backends/cpu/rounding.h"

namespace aloft::cpu {

struct MatmulExtent {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};

// What the cut by tiles must know of the product.
struct TileKind {
  bool packs_a = false;  // A is copied before use, as B is
  int bytes = 2;         // of one packed element, all planes
};

// Tiles tm x tn of the matrix units, or strips, inside waves. A wave's operands are packed
// together, then its tiles run; waves over K add up in fixed order. `group` products of a batch
// share a wave where they are small.
struct MatmulTiling {
  std::int64_t tm = 0, tn = 0;
  std::int64_t wave_m = 0, wave_n = 0, wave_k = 0;
  std::int64_t group = 1;
  // A tile on the matrix units sums this much of K at a time, so that its operands stay in the
  // second cache.
  std::int64_t pass_k = 0;
};

MatmulTiling choose_tiling(const MatmulExtent& extent, const TileKind& kind);

// What the cut by strips must know of the kernel.
struct StripKind {
  std::int64_t unit_m = 32, unit_k = 32;
  bool packs_a = false;
  int bytes = 2;  // of a packed element, all planes
  int planes = 1;
  // Sums of so much of K are added up by themselves; 0: in one chain, however it is cut.
  std::int64_t pass_k = 0;
};

// The cut by strips (amx_strip.h, vector_strip.h): tn is a panel, tm a band of rows that stays in
// the second cache while the panels go by. The order of summation does not depend on either, so
// that they may depend on the number of threads.
MatmulTiling choose_strips(const MatmulExtent& extent, const StripKind& kind, int threads);

// Rows of a block, at most `most`, such that a band of `band` rows is least more when it is cut
// into whole blocks.
std::int64_t rows_a_block(std::int64_t band, std::int64_t most);

}  // namespace aloft::cpu
