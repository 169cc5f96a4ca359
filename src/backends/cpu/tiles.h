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

inline const void* at(const void* p, std::int64_t i, DType t) {
  return static_cast<const char*>(p) + i * static_cast<std::int64_t>(size_of(t));
}
inline void* at(void* p, std::int64_t i, DType t) {
  return static_cast<char*>(p) + i * static_cast<std::int64_t>(size_of(t));
}

// Elements [i, i + n) of p as f32: where they lie if they are f32, else widened into `buffer`.
inline const float* open_tile(DType t, const void* p, std::int64_t i, std::int64_t n,
                              float* buffer) {
  if (t == DType::F32) return static_cast<const float*>(p) + i;
  widen(t, at(p, i, t), buffer, n);
  return buffer;
}
// Where to write elements [i, i + n) of p as f32; close_tile rounds them into place.
inline float* result_tile(DType t, void* p, std::int64_t i, float* buffer) {
  return t == DType::F32 ? static_cast<float*>(p) + i : buffer;
}
inline void close_tile(DType t, const float* tile, void* p, std::int64_t i, std::int64_t n) {
  if (t != DType::F32) narrow(tile, t, at(p, i, t), n);
}

}  // namespace aloft::cpu
