// Packing a panel of B as bf16 planes (planes.h), in pieces that take few cycles each: the shadow
// of the matrix tiles (amx_strip.h). The planes have the bits of split_into_planes().
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "backends/cpu/amx/amx_blocks-inl.h"
#include "backends/cpu/amx/amx_strip.h"
#include "types/dtype.h"

namespace aloft::cpu {
namespace {

// Puts the words of the upper half of a vector between those of the lower.
ALOFT_AMX inline __m512i interleave_halves(__m512i v) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, v);
}

// 32 values as f32 become kPlanes vectors of 32 bf16, in the same order.
struct SplitF16 {
  using Element = std::uint16_t;
  static constexpr int kPlanes = 2;

  static ALOFT_AMX inline __m512 load(const Element* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  // 8 values of each of four lines, in the order of the lines.
  static ALOFT_AMX inline void load(const Element* p, std::int64_t stride, __m512& first,
                                    __m512& second) {
    const auto eight = [&](std::int64_t line) ALOFT_AMX {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + line * stride));
    };
    first = _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(eight(0)), eight(1), 1));
    second =
        _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(eight(2)), eight(3), 1));
  }
  static ALOFT_AMX inline __m512 rest(__m512 x, __m256i top) {
    constexpr int kNanOrInfinity = 0x99;
    const __mmask16 finite = _knot_mask16(_mm512_fpclass_ps_mask(x, kNanOrInfinity));
    return _mm512_maskz_sub_ps(
        finite, x, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(top), 16)));
  }
  static ALOFT_AMX inline void split(__m512 first, __m512 second, __m512i* planes) {
    // Rounding to bf16 flushes f32 denormals, which no f16 and no half of one is.
    planes[0] = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
    planes[1] = reinterpret_cast<__m512i>(
        _mm512_cvtne2ps_pbh(rest(second, _mm512_extracti64x4_epi64(planes[0], 1)),
                            rest(first, _mm512_castsi512_si256(planes[0]))));
  }
};

template <int kCount>
struct SplitF32 {
  using Element = float;
  static constexpr int kPlanes = kCount;

  static ALOFT_AMX inline __m512 load(const Element* p) { return _mm512_loadu_ps(p); }
  static ALOFT_AMX inline void load(const Element* p, std::int64_t stride, __m512& first,
                                    __m512& second) {
    const auto pair = [&](std::int64_t line) ALOFT_AMX {
      return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p + line * stride)),
                                _mm256_loadu_ps(p + (line + 1) * stride), 1);
    };
    first = pair(0);
    second = pair(2);
  }
  // Takes the next plane, the upper halves of the words, from x; planes.cpp says how.
  static ALOFT_AMX inline __m512i next_plane(__m512i& x) {
    const __m512i infinity = _mm512_set1_epi32(0x7f800000);
    const __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi32(0x7fffffff));
    const __mmask16 rounds = _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(0x7f7f8000));
    const __m512i carry =
        _mm512_add_epi32(_mm512_set1_epi32(0x7fff),
                         _mm512_and_si512(_mm512_srli_epi32(x, 16), _mm512_set1_epi32(1)));
    __m512i top = _mm512_mask_add_epi32(x, rounds, x, carry);
    top = _mm512_and_si512(top, _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
    top = _mm512_mask_or_epi32(top, _mm512_cmpgt_epu32_mask(magnitude, infinity), top,
                               _mm512_set1_epi32(0x00400000));
    x = _mm512_castps_si512(_mm512_maskz_sub_ps(_mm512_cmplt_epu32_mask(magnitude, infinity),
                                                _mm512_castsi512_ps(x), _mm512_castsi512_ps(top)));
    return top;
  }
  static ALOFT_AMX inline void split(__m512 first, __m512 second, __m512i* planes) {
    const __m512i odd =
        _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                         25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    __m512i f = _mm512_castps_si512(first), s = _mm512_castps_si512(second);
    for (int p = 0; p < kPlanes; ++p) {
      const __m512i top = next_plane(f);
      planes[p] = _mm512_permutex2var_epi16(top, odd, next_plane(s));
    }
  }
};

// From rows of B: a piece is two rows of 16.
template <class Split>
struct PlaneRowPieces {
  using Element = typename Split::Element;
  const Element* from;
  std::int64_t ld, depth, plane, count;
  std::uint16_t* to;
  PlaneRowPieces(const AmxPanelSource& s, std::uint16_t* panel)
      : from(static_cast<const Element*>(s.data)),
        ld(s.ld),
        depth(s.k),
        plane(s.plane),
        count(s.k),
        to(panel) {}

  ALOFT_AMX inline void piece() {
    // Past the last row the panel behind this one begins, as a rule to be packed next.
    constexpr std::int64_t kAhead = 32;  // rows
    const Element* soon = from + kAhead * ld;
    if (count <= kAhead) soon += kAmxPanel - depth * ld;
    _mm_prefetch(reinterpret_cast<const char*>(soon), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(soon + ld), _MM_HINT_T0);
    __m512i planes[Split::kPlanes];
    Split::split(Split::load(from), Split::load(from + ld), planes);
    for (int p = 0; p < Split::kPlanes; ++p)
      _mm512_store_si512(to + p * plane, interleave_halves(planes[p]));
    to += kAmxPanel;
    from += --count % 2 ? 16 : 2 * ld - 16;
  }
};

// From rows of B transposed: four pieces turn 16 columns of 8 values each.
template <class Split>
struct PlaneColumnPieces {
  using Element = typename Split::Element;
  const Element* first;
  std::int64_t ld, k, plane, count, at = 0;
  std::uint16_t* to;
  __m512i rows[4][Split::kPlanes];
  PlaneColumnPieces(const AmxPanelSource& s, std::uint16_t* panel)
      : first(static_cast<const Element*>(s.data)),
        ld(s.ld),
        k(s.k),
        plane(s.plane),
        count(s.k),
        to(panel) {}

  ALOFT_AMX inline void read(int line) {
    __m512 a, b;
    Split::load(first + line * ld + at, 4 * ld, a, b);
    Split::split(a, b, rows[line]);
  }
  ALOFT_AMX inline void write(int p) {
    const __m512i x0 = _mm512_unpacklo_epi32(rows[0][p], rows[1][p]);
    const __m512i x1 = _mm512_unpacklo_epi32(rows[2][p], rows[3][p]);
    const __m512i x2 = _mm512_unpackhi_epi32(rows[0][p], rows[1][p]);
    const __m512i x3 = _mm512_unpackhi_epi32(rows[2][p], rows[3][p]);
    std::uint16_t* line = to + at * kAmxPanel + p * plane;
    _mm512_store_si512(line, _mm512_unpacklo_epi64(x0, x1));
    _mm512_store_si512(line + 2 * kAmxPanel, _mm512_unpackhi_epi64(x0, x1));
    _mm512_store_si512(line + 4 * kAmxPanel, _mm512_unpacklo_epi64(x2, x3));
    _mm512_store_si512(line + 6 * kAmxPanel, _mm512_unpackhi_epi64(x2, x3));
  }
  ALOFT_AMX inline void fetch() const {
    constexpr std::int64_t kLine = 64 / sizeof(Element), kUnitsALine = kLine / 8, kAhead = 3;
    const std::int64_t share = 16 / kUnitsALine, group = at / 8 % kUnitsALine * share;
    // Past the end of these lines the other 16, or the panel behind this one, begin.
    const Element* soon = first + at + kAhead * kLine;
    if (at + kAhead * kLine >= k) soon += 16 * ld - k;
    for (std::int64_t l = group; l < group + share; ++l)
      _mm_prefetch(reinterpret_cast<const char*>(soon + l * ld), _MM_HINT_T0);
  }
  ALOFT_AMX inline void next() {
    at += 8;
    if (at < k) return;
    at = 0;  // the other 16 columns
    first += 16 * ld;
    to += 32;
  }

  ALOFT_AMX inline void piece() {
    switch (count-- % 4) {
      case 0:
        fetch();
        read(0);
        if constexpr (Split::kPlanes == 2) read(1);
        return;
      case 3:
        if constexpr (Split::kPlanes == 3) read(1);
        read(2);
        if constexpr (Split::kPlanes == 2) read(3);
        return;
      case 2:
        if constexpr (Split::kPlanes == 3) read(3);
        write(0);
        return;
      default:
        for (int p = 1; p < Split::kPlanes; ++p) write(p);
        next();
    }
  }
};

}  // namespace
}  // namespace aloft::cpu
