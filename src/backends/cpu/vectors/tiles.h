// Tiles: short runs of elements as f32 in the first cache. An element-wise or row-wise kernel is
// written once, over f32; tiles of bf16 and f16 are widened on the way in and rounded (to nearest,
// ties to even) on the way out. For f32 the tile is the memory itself.
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

// Elements of a tile; a few tiles fit into the first cache together.
inline constexpr std::int64_t kTile = 1024;

// A float type whose kernels compute in f32.
constexpr bool has_tiles(DType t) { return t == DType::F32 || is_low(t); }

// n elements at src (f32, bf16, f16) as f32. Any n; no alignment needed.
void widen(DType from, const void* src, float* dst, std::int64_t n);
// n f32 to f32, bf16 or f16, each rounded once.
void narrow(const float* src, DType to, void* dst, std::int64_t n);
// n f32 rounded to bf16 or f16 where they lie: what narrow and widen would give.
void round_tile(DType to, float* tile, std::int64_t n);

inline const void* at(const void* p, std::int64_t i, DType t) {
  return static_cast<const char*>(p) + i * static_cast<std::int64_t>(size_of(t));
}
inline void* at(void* p, std::int64_t i, DType t) {
  return static_cast<char*>(p) + i * static_cast<std::int64_t>(size_of(t));
}

// n elements of any type at src as f32 or f64: where they lie if they have that type already, else
// converted into `buffer`.
const float* open_f32(DType t, const void* src, float* buffer, std::int64_t n);
const double* open_f64(DType t, const void* src, double* buffer, std::int64_t n);
// n results to elements of any type at dst; nothing is done where `tile` is dst already. Integers
// truncate and saturate, NaN becomes 0, bool is != 0.
void close_f32(DType t, const float* tile, void* dst, std::int64_t n);
void close_f64(DType t, const double* tile, void* dst, std::int64_t n);

}  // namespace aloft::cpu
