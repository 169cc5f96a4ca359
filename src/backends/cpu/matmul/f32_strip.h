// Products of f32 by strips (vector_strip.h), the tile kernel where there are no units for the
// types: chains of fused multiply-adds, up to 14 x 32 in registers (AVX-512; 6 x 16 with AVX2).
// Measured on two threads: 450 to 470 GFLOP/s with operands in the second cache, where the
// library's best layout reaches 413 (docs/decisions/0004).
#pragma once

#include "backends/cpu/matmul/vector_strip.h"

namespace aloft::cpu {

RowBlocks f32_blocks();

// A word is an f32.
void run_f32_strip(const VectorStrip& strip);

}  // namespace aloft::cpu
