// Pieces of the kernels on the matrix tiles (amx.cpp, amx_strip.cpp). A block of C is 32 x 32: four
// accumulator tiles (0..3), two tiles of A (4, 5) and two of B (6, 7), so that each tile loaded is
// used twice.
//
// Operands of several planes (planes.h): the product of two sums, without the terms that lie below
// what the result is worth.
//   3 products of 2 planes: hi hi + hi lo + lo hi; lo lo is 2^-16 of the product, below f16's own
//     rounding and below what two planes hold of a f32
//   4 of 2: all of them, for f16 operands with a f32 result
//   6 of 3: the terms above 2^-24 of the product, for f32
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "backends/cpu/amx/amx.h"

#define ALOFT_AMX                                                               \
  __attribute__((                                                               \
      target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16," \
             "f16c,prfchw")))

namespace aloft::cpu {
namespace {

inline constexpr std::int64_t kBlock = 32;  // of C
inline constexpr std::int64_t kRows = 16;   // of one tile

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// What else is done after a tile product, of which a step has 4 a term.
struct NothingElse {
  template <int kProduct>
  void after() {}
};

// One step of 32 along K, with the operand that is not there yet (or both) loaded. Loads stand
// between the products, not before them: the products of a tile already there hide the next load
// (a sixth faster at a depth of 768). B's go past the first cache, which does not hold both
// operands' rows (5 to 8 % faster).
template <bool kLower, bool kLoadA = true, bool kLoadB = true, int kFirst = 0, class Else>
ALOFT_AMX inline void step(const std::uint16_t* a, std::int64_t lda, const std::uint16_t* b,
                           Else& besides) {
  if constexpr (kLoadA) _tile_loadd(4, a, lda * 2);
  if constexpr (kLoadB) _tile_stream_loadd(6, b, 128);
  _tile_dpbf16ps(0, 4, 6);
  besides.template after<kFirst>();
  if constexpr (kLoadB) _tile_stream_loadd(7, b + 32, 128);
  _tile_dpbf16ps(1, 4, 7);
  besides.template after<kFirst + 1>();
  if constexpr (kLower) {
    if constexpr (kLoadA) _tile_loadd(5, a + kRows * lda, lda * 2);
    _tile_dpbf16ps(2, 5, 6);
    besides.template after<kFirst + 2>();
    _tile_dpbf16ps(3, 5, 7);
    besides.template after<kFirst + 3>();
  }
}

// The planes that meet, in an order in which each step keeps one operand of the step before: 8
// loads instead of 12. Within 32 of K the order does not touch accuracy: the sums so far are larger
// than all of it.
struct Term {
  int a, b;
};
inline constexpr Term kTerms1[] = {{0, 0}};
inline constexpr Term kTerms3[] = {{1, 0}, {0, 0}, {0, 1}};
inline constexpr Term kTerms4[] = {{1, 1}, {1, 0}, {0, 0}, {0, 1}};
inline constexpr Term kTerms6[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};

// Where a block's operands of several planes lie: distances in elements.
struct PlaneStrides {
  std::int64_t lda, a_plane, b_plane;
};

template <bool kLower, const auto& kTerms, class Else, std::size_t... kIndex>
ALOFT_AMX inline void step_terms(const std::uint16_t* a, const std::uint16_t* b,
                                 const PlaneStrides& s, Else& besides,
                                 std::index_sequence<kIndex...>) {
  (step < kLower, kIndex == 0 || kTerms[kIndex].a != kTerms[kIndex - (kIndex > 0)].a,
   kIndex == 0 || kTerms[kIndex].b != kTerms[kIndex - (kIndex > 0)].b,
   4 * static_cast<int>(kIndex) >
       (a + kTerms[kIndex].a * s.a_plane, s.lda, b + kTerms[kIndex].b * s.b_plane, besides),
   ...);
}
template <bool kLower, const auto& kTerms, class Else>
ALOFT_AMX inline void step_planes(const std::uint16_t* a, const std::uint16_t* b,
                                  const PlaneStrides& s, Else& besides) {
  step_terms<kLower, kTerms>(a, b, s, besides, std::make_index_sequence<std::size(kTerms)>());
}

template <bool kLower>
ALOFT_AMX inline void start_sums(const float* from, std::int64_t ld) {
  if (!from) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  _tile_loadd(0, from, ld * 4);
  _tile_loadd(1, from + kRows, ld * 4);
  if constexpr (kLower) {
    _tile_loadd(2, from + kRows * ld, ld * 4);
    _tile_loadd(3, from + kRows * ld + kRows, ld * 4);
  }
}

template <bool kLower>
ALOFT_AMX inline void store_sums(float* to, std::int64_t ld) {
  _tile_stored(0, to, ld * 4);
  _tile_stored(1, to + kRows, ld * 4);
  if constexpr (kLower) {
    _tile_stored(2, to + kRows * ld, ld * 4);
    _tile_stored(3, to + kRows * ld + kRows, ld * 4);
  }
}

// Is any of a block's sums infinite or NaN?
ALOFT_AMX inline bool any_odd(const float* sums, std::int64_t rows, std::int64_t ld) {
  const __m512 zero = _mm512_setzero_ps();
  __m512 left = zero, right = zero;  // 0 * x is NaN for those alone
  for (std::int64_t r = 0; r < rows; ++r, sums += ld) {
    left = _mm512_fmadd_ps(zero, _mm512_loadu_ps(sums), left);
    right = _mm512_fmadd_ps(zero, _mm512_loadu_ps(sums + 16), right);
  }
  left = _mm512_add_ps(left, right);
  return _mm512_cmp_ps_mask(left, left, _CMP_UNORD_Q) != 0;
}

}  // namespace
}  // namespace aloft::cpu
