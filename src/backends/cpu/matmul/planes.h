// A f16 or f32 value as a sum of bf16 planes: the first is the value rounded to bf16, each next one
// what is left, rounded. Two planes hold a f16 exactly, three a f32; two planes of a f32 miss at
// most 2^-16 of it. A finite value whose first plane would round up to infinity is cut off
// instead. The planes of an infinity are (inf, 0, 0), of a NaN (NaN, 0, 0).
//
// Planes below the least normal float (2^-126) are written as they are, denormal; matrix units
// count them as zero (docs/precision.md).
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

inline constexpr int kMostPlanes = 3;

// `lines` lines of n elements, ld apart, to `planes` planes with lines ldd apart; plane p starts
// at dst + p * plane. F16 or F32.
struct PlanesJob {
  const void* src = nullptr;
  DType type = DType::F32;
  std::int64_t ld = 0, lines = 0, n = 0;
  int planes = 2;
  std::uint16_t* dst = nullptr;
  std::int64_t ldd = 0, plane = 0;
};
void split_into_planes(const PlanesJob& job);

}  // namespace aloft::cpu
