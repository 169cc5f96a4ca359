#include "backends/cpu/matmul/bf16_strip.h"

#include "base/error.h"

#if defined(__x86_64__)

#include <array>
#include <utility>

#include "backends/cpu/rounding.h"
#include "backends/cpu/vectors/low_lanes.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {
namespace {

constexpr int kBlockRows = static_cast<int>(kBf16Blocks.rows);

ALOFT_LANES inline void store_lines(const VectorStrip& s, void* c, __m512 x, __m512 y) {
  if (s.c_type == DType::F32) {
    _mm512_stream_ps(static_cast<float*>(c), x);
    _mm512_stream_ps(static_cast<float*>(c) + 16, y);
    return;
  }
  const __m512i line =
      s.c_type == DType::BF16
          ? reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(y, x))
          : _mm512_inserti64x4(
                _mm512_castsi256_si512(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)),
                _mm512_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT), 1);
  _mm512_stream_si512(static_cast<__m512i*>(c), line);
}

// Rounds a row of sums into C.
ALOFT_LANES inline void finish_row(const VectorStrip& s, std::int64_t row, __m512 x, __m512 y,
                                   std::uint32_t mask, bool lines) {
  const auto low = static_cast<__mmask16>(mask), high = static_cast<__mmask16>(mask >> 16);
  if (s.bias) {
    x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(low, s.bias));
    y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(high, s.bias + 16));
  }
  void *left = at(s.c, row * s.ldc, s.c_type), *right = at(s.c, row * s.ldc + 16, s.c_type);
  if (lines) return store_lines(s, left, x, y);
  if (s.accumulate) {
    x = _mm512_add_ps(x, load_lanes(left, low, s.c_type));
    y = _mm512_add_ps(y, load_lanes(right, high, s.c_type));
  }
  store_lanes(left, low, x, s.c_type);
  if (high) store_lanes(right, high, y, s.c_type);
}

template <int kRowsHere, bool kBlocks>
ALOFT_LANES void run_block(const VectorStrip& s, std::int64_t row, std::uint32_t mask, bool lines,
                           Fetching& fetching) {
  __m512 left[kRowsHere], right[kRowsHere];
  ALOFT_UNROLL
  for (int r = 0; r < kRowsHere; ++r) left[r] = right[r] = _mm512_setzero_ps();
  constexpr std::int64_t kAhead = 8 * kStripPanel;
  const std::int64_t lda = s.lda, triple = 3 * lda;
  // Five rows a base, so that all addresses fit into registers: base + {0, 1, 2, 3, 4} lda.
  const std::uint32_t *a0 = s.a +
                            (kBlocks ? row / s.block_rows * kBf16Blocks.stride * s.k : row * lda),
                      *a5 = a0 + 5 * lda, *a10 = a5 + 5 * lda, *b = s.b;
  for (std::int64_t done = 0; done < s.k; fetching.step()) {
    const std::int64_t until = std::min(done + kFetchEvery, s.k);
    for (; done < until; ++done, b += kStripPanel) {
      const auto b0 = reinterpret_cast<__m512bh>(_mm512_load_si512(b));
      const auto b1 = reinterpret_cast<__m512bh>(_mm512_load_si512(b + 16));
      hwy::Prefetch(b + kAhead);
      hwy::Prefetch(b + kAhead + 16);
      ALOFT_UNROLL
      for (int r = 0; r < kRowsHere; ++r) {
        const std::uint32_t* base = r < 5 ? a0 : r < 10 ? a5 : a10;
        const std::uint32_t pair = kBlocks ? a0[r] : r % 5 == 3 ? base[triple] : base[r % 5 * lda];
        const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pair)));
        left[r] = _mm512_dpbf16_ps(left[r], x, b0);
        right[r] = _mm512_dpbf16_ps(right[r], x, b1);
      }
      if constexpr (kBlocks)
        a0 += kBf16Blocks.stride;
      else
        ++a0, ++a5, ++a10;
    }
  }
  const float* before = s.partial_in ? s.partial_in + row * s.ldp : nullptr;
  float* sums = s.partial_out ? s.partial_out + row * s.ldp : nullptr;
  ALOFT_UNROLL
  for (int r = 0; r < kRowsHere; ++r) {
    __m512 x = left[r], y = right[r];
    if (before) {
      x = _mm512_add_ps(_mm512_loadu_ps(before + r * s.ldp), x);
      y = _mm512_add_ps(_mm512_loadu_ps(before + r * s.ldp + 16), y);
    }
    if (sums) {
      _mm512_storeu_ps(sums + r * s.ldp, x);
      _mm512_storeu_ps(sums + r * s.ldp + 16, y);
    } else {
      finish_row(s, row + r, x, y, mask, lines);
    }
  }
}

using RunRows = void (*)(const VectorStrip&, std::int64_t, std::uint32_t, bool, Fetching&);
template <bool kBlocks, int... kRows>
constexpr std::array<RunRows, sizeof...(kRows)> all_rows(std::integer_sequence<int, kRows...>) {
  return {run_block<kRows + 1, kBlocks>...};
}
constexpr auto kRunRows = all_rows<false>(std::make_integer_sequence<int, kBlockRows>());
constexpr auto kRunBlocks = all_rows<true>(std::make_integer_sequence<int, kBlockRows>());

}  // namespace

void run_bf16_strip(const VectorStrip& s) {
  const std::uint32_t mask = s.n < kStripPanel ? (1u << s.n) - 1 : ~0u;
  const bool lines = streams_lines(s);
  const auto& run_here = s.lda ? kRunRows : kRunBlocks;
  // Rows read where they lie are cut evenly: a last block of few rows would wait for B.
  const std::int64_t step = s.lda ? even_part(s.m, kBlockRows, 1) : s.block_rows;
  Fetching fetching(s.next, ceil_div(s.m, step) * ceil_div(s.k, kFetchEvery));
  for (std::int64_t row = 0; row < s.m; row += step)
    run_here[std::min(step, s.m - row) - 1](s, row, mask, lines, fetching);
  if (lines) _mm_sfence();
}

}  // namespace aloft::cpu

#else

namespace aloft::cpu {
void run_bf16_strip(const VectorStrip&) { ensure(false, "no bf16 products on this processor"); }
}  // namespace aloft::cpu

#endif
