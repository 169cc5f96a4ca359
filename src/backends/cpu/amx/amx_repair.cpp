#include "backends/cpu/amx/amx_repair.h"

#include "backends/cpu/amx/amx.h"
#include "base/error.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define ALOFT_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

namespace aloft::cpu {
namespace {

ALOFT_AVX512 inline float widen(std::uint16_t bits) {
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
ALOFT_AVX512 inline Odd odd_bits(const float* p) {
  const __m512i low = _mm512_set1_epi32(0x7fffffff), inf = _mm512_set1_epi32(0x7f800000);
  const __m512i left = _mm512_and_si512(_mm512_loadu_si512(p), low);
  const __m512i right = _mm512_and_si512(_mm512_loadu_si512(p + 16), low);
  return {_mm512_cmpgt_epu32_mask(left, inf) |
              static_cast<std::uint32_t>(_mm512_cmpgt_epu32_mask(right, inf)) << 16,
          _mm512_cmpge_epu32_mask(left, inf) |
              static_cast<std::uint32_t>(_mm512_cmpge_epu32_mask(right, inf)) << 16};
}
ALOFT_AVX512 inline Odd odd_bits(const std::uint16_t* p) {
  const __m512i magnitude = _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi16(0x7fff));
  const __m512i inf = _mm512_set1_epi16(0x7f80);
  return {_mm512_cmpgt_epu16_mask(magnitude, inf), _mm512_cmpge_epu16_mask(magnitude, inf)};
}

// Columns of a panel with something that is not finite.
ALOFT_AVX512 Odd odd_columns(const std::uint16_t* b, std::int64_t k) {
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
ALOFT_AVX512 Odd odd_row(const std::uint16_t* a, std::int64_t k) {
  Odd found;
  for (std::int64_t i = 0; i < k; i += kAmxDepth) found = found | odd_bits(a + i);
  return {found.nan ? ~0u : 0, found.any ? ~0u : 0};
}

// One row of a block again, with one product a pair of values, their planes added up.
ALOFT_AVX512 void sum_plainly(const SummedPlanes& s, const std::uint16_t* a, const float* from,
                              float* sums) {
  const __m512i odd_half = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  auto pair = [&](const std::uint16_t* p, bool odd) ALOFT_AVX512 {
    const __m512i bits = _mm512_loadu_si512(p);
    return _mm512_castsi512_ps(odd ? _mm512_and_si512(bits, odd_half)
                                   : _mm512_slli_epi32(bits, 16));
  };
  for (std::int64_t col = 0; col < kAmxPanel; col += 16) {
    __m512 sum = from ? _mm512_loadu_ps(from + col) : _mm512_setzero_ps();
    for (std::int64_t k = 0; k < s.k; ++k) {
      const std::uint16_t* pb = s.b + (k / 2) * 2 * kAmxPanel + 2 * col;
      float va = 0;
      __m512 vb = _mm512_setzero_ps();
      for (int p = s.planes - 1; p >= 0; --p) {  // exact from the smallest on
        va += widen(a[k + p * s.a_plane]);
        vb = _mm512_add_ps(vb, pair(pb + p * s.b_plane, k & 1));
      }
      sum = _mm512_fmadd_ps(_mm512_set1_ps(va), vb, sum);
    }
    _mm512_store_ps(sums + col, sum);
  }
}

}  // namespace

// (Where a whole gradient has become NaN, every NaN has an explanation and nothing is done twice.)
ALOFT_AVX512 void repair_sums(const SummedPlanes& s, std::int64_t rows, std::uint32_t columns,
                              float* sums) {
  bool scanned = false;
  Odd of_columns;
  for (std::int64_t r = 0; r < rows; ++r) {
    const Odd found = odd_bits(sums + r * kAmxPanel);
    if (!(found.any & columns)) continue;
    const std::uint16_t* a = s.a + r * s.lda;
    const float* from = s.from ? s.from + r * s.ldp : nullptr;
    Odd explained = odd_row(a, s.k);
    if (from) explained = explained | odd_bits(from);
    if (!(found.beyond(explained) & columns)) continue;
    if (!scanned) of_columns = odd_columns(s.b, s.k);
    scanned = true;
    if (found.beyond(explained | of_columns) & columns)
      sum_plainly(s, a, from, sums + r * kAmxPanel);
  }
}

}  // namespace aloft::cpu

#else

namespace aloft::cpu {
void repair_sums(const SummedPlanes&, std::int64_t, std::uint32_t, float*) {
  ensure(false, "no matrix tiles on this processor");
}
}  // namespace aloft::cpu

#endif
