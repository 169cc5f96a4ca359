// Products with few rows, as in decoding: C[m, n] = A[m, k] * B (+ bias) with m <= kSkinnyRows. The
// cost is reading B, so B is read once, where it lies, and nothing is packed. Sums are f32 in a
// fixed order, rounded once; bits do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "types/dtype.h"

namespace aloft::cpu {

inline constexpr std::int64_t kSkinnyRows = 8;

struct SkinnySpec {
  std::int64_t m = 0, n = 0, k = 0;
  DType a = DType::F32, b = DType::F32, c = DType::F32;  // each F32, BF16 or F16
  bool transpose_b = false;                              // B stored [n, k], else [k, n]
  std::optional<DType> bias;
};

struct SkinnyPointers {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* c = nullptr;
  void* scratch = nullptr;  // skinny_scratch_bytes(), 64-byte aligned
};

std::size_t skinny_scratch_bytes(const SkinnySpec& spec);
void run_skinny(const SkinnySpec& spec, const SkinnyPointers& pointers);

}  // namespace aloft::cpu
