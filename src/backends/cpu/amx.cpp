// The matrix-tile kernel. A block of C is 32 x 32: four accumulator tiles (0..3), two tiles of A
// (4, 5) and two of B (6, 7), so that each tile loaded is used twice.
//
// Operands of several planes (planes.h): the product of two sums, without the terms that lie below
// what the result is worth.
//   3 products of 2 planes: hi hi + hi lo + lo hi; lo lo is 2^-16 of the product, below f16's own
//     rounding and below what two planes hold of a f32
//   4 of 2: all of them, for f16 operands with a f32 result
//   6 of 3: the terms above 2^-24 of the product, for f32
//
// The planes of an infinity are (inf, 0), and inf * 0 would turn an infinite result into NaN; a sum
// of rounded-up halves can overflow where the product does not. A row with a NaN or an infinity
// that its operands do not explain is summed again, plainly.
#include "backends/cpu/amx.h"

#include "base/error.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <iterator>
#include <utility>

#define ALOFT_AMX \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,f16c")))

namespace aloft::cpu {
namespace {

constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kRows = 16;  // of one tile

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};

// Kept in memory that the compiler cannot know unused: the intrinsic tells it of the first bytes
// only.
struct BlockConfigs {
  TileConfig of_rows[kBlock + 1];
  // `rows` of a block, 1..32: the tiles of the lower half get what exceeds 16 (at least one row,
  // because a tile of none is not legal; the caller keeps it from being read or stored).
  BlockConfigs() {
    for (std::int64_t rows = 1; rows <= kBlock; ++rows) {
      const auto upper = static_cast<std::uint8_t>(rows < kRows ? rows : kRows);
      const auto lower = static_cast<std::uint8_t>(rows > kRows ? rows - kRows : 1);
      for (int t = 0; t < 8; ++t) {
        of_rows[rows].bytes_per_row[t] = 64;
        of_rows[rows].rows[t] = t == 2 || t == 3 || t == 5 ? lower : t >= 6 ? kRows : upper;
      }
    }
  }
};
const BlockConfigs kConfigs;

ALOFT_AMX void configure(std::int64_t rows) { _tile_loadconfig(&kConfigs.of_rows[rows]); }

// One step of 32 along K, with the operand that is not there yet (or both) loaded. Loads stand
// between the products, not before them: the products of a tile already there hide the next load
// (a sixth faster at a depth of 768).
template <bool kLower, bool kLoadA = true, bool kLoadB = true>
ALOFT_AMX inline void step(const std::uint16_t* a, std::int64_t lda, const std::uint16_t* b) {
  if constexpr (kLoadA) _tile_loadd(4, a, lda * 2);
  if constexpr (kLoadB) _tile_loadd(6, b, 128);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (kLoadB) _tile_loadd(7, b + 32, 128);
  _tile_dpbf16ps(1, 4, 7);
  if constexpr (kLower) {
    if constexpr (kLoadA) _tile_loadd(5, a + kRows * lda, lda * 2);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

// The planes that meet, in an order in which each step keeps one operand of the step before: 7
// loads instead of 12. Within 32 of K the order does not touch accuracy: the sums so far are larger
// than all of it.
struct Term {
  int a, b;
};
constexpr Term kTerms3[] = {{1, 0}, {0, 0}, {0, 1}};
constexpr Term kTerms4[] = {{1, 1}, {1, 0}, {0, 0}, {0, 1}};
constexpr Term kTerms6[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};

template <bool kLower, const auto& kTerms, std::size_t... kIndex>
ALOFT_AMX inline void step_planes(const AmxTile& t, const std::uint16_t* a, const std::uint16_t* b,
                                  std::index_sequence<kIndex...>) {
  (step < kLower, kIndex == 0 || kTerms[kIndex].a != kTerms[kIndex - (kIndex > 0)].a,
   kIndex == 0 || kTerms[kIndex].b !=
                      kTerms[kIndex - (kIndex > 0)].b > (a + kTerms[kIndex].a * t.a_plane, t.lda,
                                                         b + kTerms[kIndex].b * t.b_plane),
   ...);
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

constexpr std::int64_t kStepB = kAmxDepth * kAmxPanel;

template <bool kLower, const auto& kTerms>
ALOFT_AMX inline void sum_planes(const AmxTile& t, const std::uint16_t* a, const std::uint16_t* b) {
  for (std::int64_t k = 0; k < t.k; k += kAmxDepth, b += kStepB)
    step_planes<kLower, kTerms>(t, a + k, b, std::make_index_sequence<std::size(kTerms)>());
}

template <bool kLower>
ALOFT_AMX inline void sum_over_k(const AmxTile& t, const std::uint16_t* a, const std::uint16_t* b) {
  if (t.products == 6) return sum_planes<kLower, kTerms6>(t, a, b);
  if (t.products == 4) return sum_planes<kLower, kTerms4>(t, a, b);
  if (t.products == 3) return sum_planes<kLower, kTerms3>(t, a, b);
  for (std::int64_t k = 0; k < t.k; k += kAmxDepth, b += kStepB) step<kLower>(a + k, t.lda, b);
}

ALOFT_AMX inline float widen(std::uint16_t bits) {
  return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(bits) << 16)));
}

// What is not finite, one bit an element of 32 f32 or 32 bf16, or a bit a column.
struct Odd {
  std::uint32_t nan = 0, any = 0;
  Odd operator|(const Odd& o) const { return {nan | o.nan, any | o.any}; }
  // What is left when those of `o`, an operand of it, explain theirs: a NaN comes from a NaN, an
  // infinity from anything that is not finite.
  std::uint32_t beyond(const Odd& o) const { return (nan & ~o.nan) | (any & ~nan & ~o.any); }
};
ALOFT_AMX inline Odd odd_bits(const float* p) {
  const __m512i low = _mm512_set1_epi32(0x7fffffff), inf = _mm512_set1_epi32(0x7f800000);
  const __m512i left = _mm512_and_si512(_mm512_loadu_si512(p), low);
  const __m512i right = _mm512_and_si512(_mm512_loadu_si512(p + 16), low);
  return {_mm512_cmpgt_epu32_mask(left, inf) |
              static_cast<std::uint32_t>(_mm512_cmpgt_epu32_mask(right, inf)) << 16,
          _mm512_cmpge_epu32_mask(left, inf) |
              static_cast<std::uint32_t>(_mm512_cmpge_epu32_mask(right, inf)) << 16};
}
ALOFT_AMX inline Odd odd_bits(const std::uint16_t* p) {
  const __m512i magnitude = _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi16(0x7fff));
  const __m512i inf = _mm512_set1_epi16(0x7f80);
  return {_mm512_cmpgt_epu16_mask(magnitude, inf), _mm512_cmpge_epu16_mask(magnitude, inf)};
}

// Columns of a panel with something that is not finite.
ALOFT_AMX Odd odd_columns(const std::uint16_t* b, std::int64_t k) {
  Odd left, right;  // two bits a column: its pair
  for (std::int64_t i = 0; i < k; i += 2, b += 2 * kAmxPanel) {
    left = left | odd_bits(b);
    right = right | odd_bits(b + kAmxPanel);
  }
  const auto columns = [](std::uint32_t l, std::uint32_t r) {
    std::uint32_t bits = 0;
    for (int c = 0; c < 16; ++c)
      bits |= ((l >> 2 * c & 3) != 0) << c | static_cast<std::uint32_t>((r >> 2 * c & 3) != 0)
                                                 << (16 + c);
    return bits;
  };
  return {columns(left.nan, right.nan), columns(left.any, right.any)};
}

// All bits or none: is there any in the row?
ALOFT_AMX Odd odd_row(const std::uint16_t* a, std::int64_t k) {
  Odd found;
  for (std::int64_t i = 0; i < k; i += kAmxDepth) found = found | odd_bits(a + i);
  return {found.nan ? ~0u : 0, found.any ? ~0u : 0};
}

// One row of a block again, with one product a pair of values, their planes added up.
ALOFT_AMX void sum_plainly(const AmxTile& t, const std::uint16_t* a, const std::uint16_t* b,
                           const float* from, float* sums) {
  const __m512i odd_half = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  auto pair = [&](const std::uint16_t* p, bool odd) ALOFT_AMX {
    const __m512i bits = _mm512_loadu_si512(p);
    return _mm512_castsi512_ps(odd ? _mm512_and_si512(bits, odd_half)
                                   : _mm512_slli_epi32(bits, 16));
  };
  for (std::int64_t col = 0; col < kBlock; col += 16) {
    __m512 sum = from ? _mm512_loadu_ps(from + col) : _mm512_setzero_ps();
    for (std::int64_t k = 0; k < t.k; ++k) {
      const std::uint16_t* pb = b + (k / 2) * 2 * kAmxPanel + 2 * col;
      float va = 0;
      __m512 vb = _mm512_setzero_ps();
      for (int p = t.planes - 1; p >= 0; --p) {  // exact from the smallest on
        va += widen(a[k + p * t.a_plane]);
        vb = _mm512_add_ps(vb, pair(pb + p * t.b_plane, k & 1));
      }
      sum = _mm512_fmadd_ps(_mm512_set1_ps(va), vb, sum);
    }
    _mm512_store_ps(sums + col, sum);
  }
}

// Rows with a value, in one of the block's `columns`, that is not finite though the operands and
// the sums so far do not explain it are summed again. (Where a whole gradient has become NaN, every
// NaN has such an explanation and nothing is done twice.)
ALOFT_AMX void repair(const AmxTile& t, const std::uint16_t* a, const std::uint16_t* b,
                      const float* from, std::int64_t rows, std::uint32_t columns, float* sums) {
  bool scanned = false;
  Odd of_columns;
  for (std::int64_t r = 0; r < rows; ++r) {
    const Odd found = odd_bits(sums + r * kBlock);
    if (!(found.any & columns)) continue;
    Odd explained = odd_row(a + r * t.lda, t.k);
    if (from) explained = explained | odd_bits(from + r * t.ldp);
    if (!(found.beyond(explained) & columns)) continue;
    if (!scanned) of_columns = odd_columns(b, t.k);
    scanned = true;
    if (found.beyond(explained | of_columns) & columns)
      sum_plainly(t, a + r * t.lda, b, from ? from + r * t.ldp : nullptr, sums + r * kBlock);
  }
}

// One bit a column of the block at `col` that C has.
inline std::uint32_t columns_of(const AmxTile& t, std::int64_t col) {
  return t.n - col < kBlock ? (1u << (t.n - col)) - 1 : ~0u;
}

ALOFT_AMX inline void store_half(const AmxTile& t, std::ptrdiff_t at, __mmask16 mask, __m512 sum,
                                 std::int64_t col) {
  if (t.bias) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, t.bias + col));
  if (t.c_type == DType::F32) {
    float* c = static_cast<float*>(t.c) + at;
    if (t.accumulate) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, c));
    _mm512_mask_storeu_ps(c, mask, sum);
    return;
  }
  auto* c = static_cast<std::uint16_t*>(t.c) + at;
  if (t.c_type == DType::BF16) {
    if (t.accumulate)
      sum = _mm512_add_ps(sum, _mm512_castsi512_ps(_mm512_slli_epi32(
                                   _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, c)), 16)));
    _mm256_mask_storeu_epi16(c, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum)));
  } else {
    if (t.accumulate) sum = _mm512_add_ps(sum, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, c)));
    _mm256_mask_storeu_epi16(c, mask, _mm512_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
  }
}

ALOFT_AMX inline void store_block(const AmxTile& t, const float* sums, std::int64_t row,
                                  std::int64_t rows, std::int64_t col) {
  const std::int64_t cols = t.n - col < kBlock ? t.n - col : kBlock;
  const std::uint32_t mask = columns_of(t, col);
  const bool plain = cols == kBlock && t.c_type == DType::BF16 && !t.bias && !t.accumulate;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::ptrdiff_t at = (row + r) * t.ldc + col;
    const __m512 left = _mm512_load_ps(sums + r * kBlock);
    const __m512 right = _mm512_load_ps(sums + r * kBlock + 16);
    if (plain) {
      _mm512_storeu_si512(static_cast<std::uint16_t*>(t.c) + at,
                          reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(right, left)));
      continue;
    }
    store_half(t, at, static_cast<__mmask16>(mask), left, col);
    if (cols > 16) store_half(t, at + 16, static_cast<__mmask16>(mask >> 16), right, col + 16);
  }
}

template <bool kLower>
ALOFT_AMX inline void run_block(const AmxTile& t, std::int64_t row, std::int64_t rows,
                                std::int64_t col) {
  const std::uint16_t* a = t.a + row * t.lda;
  const std::uint16_t* b = t.b + col / kAmxPanel * t.panel_stride;
  const float* from = t.partial_in ? t.partial_in + row * t.ldp + col : nullptr;
  start_sums<kLower>(from, t.ldp);
  sum_over_k<kLower>(t, a, b);
  if (t.partial_out && t.planes == 1) {
    store_sums<kLower>(t.partial_out + row * t.ldp + col, t.ldp);
    return;
  }
  alignas(64) float sums[kBlock * kBlock];
  store_sums<kLower>(sums, kBlock);
  if (t.planes > 1) repair(t, a, b, from, rows, columns_of(t, col), sums);
  if (!t.partial_out) {
    store_block(t, sums, row, rows, col);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < kBlock; c += 16)
      _mm512_storeu_ps(t.partial_out + (row + r) * t.ldp + col + c,
                       _mm512_load_ps(sums + r * kBlock + c));
}

}  // namespace

ALOFT_AMX void run_amx_tile(const AmxTile& t) {
  const std::int64_t whole = t.m / kBlock * kBlock, rest = t.m - whole;
  if (whole) {
    configure(kBlock);
    for (std::int64_t col = 0; col < t.n; col += kBlock)
      for (std::int64_t row = 0; row < whole; row += kBlock) run_block<true>(t, row, kBlock, col);
  }
  if (rest) {
    configure(rest);
    for (std::int64_t col = 0; col < t.n; col += kBlock) {
      if (rest > kRows)
        run_block<true>(t, whole, rest, col);
      else
        run_block<false>(t, whole, rest, col);
    }
  }
  _tile_release();
}

}  // namespace aloft::cpu

#else

namespace aloft::cpu {
void run_amx_tile(const AmxTile&) { ensure(false, "no matrix tiles on this processor"); }
}  // namespace aloft::cpu

#endif
