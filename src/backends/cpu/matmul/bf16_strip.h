// Products of bf16 by strips (vector_strip.h) on AVX512-BF16's dot products of pairs, which Highway
// 1.0.3 does not reach: up to 14 x 32 sums in registers. Two products and the sum before them are
// rounded to f32 as the instruction has it (Intel SDM, VDPBF16PS): denormals count as zero, on the
// way in and out.
#pragma once

#include "backends/cpu/matmul/vector_strip.h"

namespace aloft::cpu {

inline constexpr RowBlocks kBf16Blocks{14, 16};

// A word is a pair of bf16 neighbours along K. Only where cpu_features().avx512_bf16.
void run_bf16_strip(const VectorStrip& strip);

}  // namespace aloft::cpu
