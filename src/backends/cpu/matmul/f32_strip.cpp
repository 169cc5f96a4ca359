#include "backends/cpu/matmul/f32_strip.h"

// cpu_features() refuses a processor without AVX2: a scalar version would never run.
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/f32_strip.cpp"
#include <hwy/foreach_target.h>
// clang-format off: foreach_target.h comes before highway.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <array>
#include <utility>

#include "backends/cpu/rounding.h"
#include "backends/cpu/vectors/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Wide = hn::ScalableTag<float>;
using WideV = hn::Vec<Wide>;

constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(Wide()));
constexpr std::int64_t kColumns = 2 * kLanes;  // of a block
// Sums in registers: 28 of 32 (AVX-512), 12 of 16.
constexpr int kBlockRows = kLanes >= 16 ? 14 : 6;
constexpr std::int64_t kBlockStride = kLanes >= 16 ? 16 : 8;

// Where the sums of a block go when K ends.
struct Ending {
  float* to;
  std::int64_t ld;
  bool accumulate, stream;
};

template <int kRowsHere, bool kBlocks>
HWY_INLINE void run_block(const VectorStrip& s, std::int64_t row, std::int64_t column,
                          const Ending& ending, const float* bias, Fetching& fetching) {
  const Wide d;
  WideV left[kRowsHere], right[kRowsHere];
  ALOFT_UNROLL
  for (int r = 0; r < kRowsHere; ++r) left[r] = right[r] = hn::Zero(d);
  constexpr std::int64_t kAhead = 8 * kStripPanel;
  const std::int64_t lda = s.lda, triple = 3 * lda;
  // Five rows a base, so that all addresses fit into registers: base + {0, 1, 2, 3, 4} lda.
  const float *a0 = reinterpret_cast<const float*>(s.a) +
                    (kBlocks ? row / s.block_rows * kBlockStride * s.k : row * lda),
              *a5 = a0 + 5 * lda, *a10 = a5 + 5 * lda,
              *b = reinterpret_cast<const float*>(s.b) + column;
  const auto element = [&](int r) HWY_ATTR {
    if constexpr (kBlocks) return a0[r];
    const float* base = r < 5 ? a0 : r < 10 ? a5 : a10;
    return r % 5 == 3 ? base[triple] : base[r % 5 * lda];
  };
  for (std::int64_t done = 0; done < s.k; fetching.step()) {
    const std::int64_t until = std::min(done + kFetchEvery, s.k);
    for (; done < until; ++done, b += kStripPanel) {
      const WideV b0 = hn::Load(d, b), b1 = hn::Load(d, b + kLanes);
      hwy::Prefetch(b + kAhead);
      if constexpr (kColumns * sizeof(float) > 64) hwy::Prefetch(b + kAhead + 16);
      ALOFT_UNROLL
      for (int r = 0; r < kRowsHere; ++r) {
        const WideV x = hn::Set(d, element(r));
        left[r] = hn::MulAdd(x, b0, left[r]);
        right[r] = hn::MulAdd(x, b1, right[r]);
      }
      if constexpr (kBlocks)
        a0 += kBlockStride;
      else
        ++a0, ++a5, ++a10;
    }
  }
  const float* before = s.partial_in ? s.partial_in + row * s.ldp + column : nullptr;
  ALOFT_UNROLL
  for (int r = 0; r < kRowsHere; ++r) {
    float* to = ending.to + r * ending.ld;
    WideV x = left[r], y = right[r];
    if (before) {
      x = hn::Add(hn::LoadU(d, before + r * s.ldp), x);
      y = hn::Add(hn::LoadU(d, before + r * s.ldp + kLanes), y);
    }
    if (bias) {
      x = hn::Add(x, hn::LoadU(d, bias));
      y = hn::Add(y, hn::LoadU(d, bias + kLanes));
    }
    if (ending.accumulate) {
      x = hn::Add(x, hn::LoadU(d, to));
      y = hn::Add(y, hn::LoadU(d, to + kLanes));
    }
    if (ending.stream) {
      hn::Stream(x, d, to);
      hn::Stream(y, d, to + kLanes);
    } else {
      hn::StoreU(x, d, to);
      hn::StoreU(y, d, to + kLanes);
    }
  }
}

template <int kRowsHere, bool kBlocks>
void run_rows(const VectorStrip& s, std::int64_t row, std::int64_t column, const Ending& ending,
              Fetching& fetching) {
  run_block<kRowsHere, kBlocks>(s, row, column, ending,
                                s.bias && !s.partial_out ? s.bias + column : nullptr, fetching);
}

using RunRows = void (*)(const VectorStrip&, std::int64_t, std::int64_t, const Ending&, Fetching&);
template <bool kBlocks, int... kRows>
constexpr std::array<RunRows, sizeof...(kRows)> all_rows(std::integer_sequence<int, kRows...>) {
  return {run_rows<kRows + 1, kBlocks>...};
}
constexpr auto kRunRows = all_rows<false>(std::make_integer_sequence<int, kBlockRows>());
constexpr auto kRunBlocks = all_rows<true>(std::make_integer_sequence<int, kBlockRows>());

// The values of rows that the registers cannot write: past C's columns, or of 16 bits.
void finish_spare(const VectorStrip& s, std::int64_t row, std::int64_t rows, float* spare) {
  float old[kStripPanel];
  for (std::int64_t r = 0; r < rows; ++r, spare += kStripPanel) {
    void* c = at(s.c, (row + r) * s.ldc, s.c_type);
    if (s.bias)
      for (std::int64_t j = 0; j < s.n; ++j) spare[j] += s.bias[j];
    if (s.accumulate) {
      widen(s.c_type, c, old, s.n);
      for (std::int64_t j = 0; j < s.n; ++j) spare[j] += old[j];
    }
    narrow(spare, s.c_type, c, s.n);
  }
}

void run(const VectorStrip& s) {
  const bool direct = s.c_type == DType::F32 && s.n == kStripPanel;
  alignas(64) float spare[kBlockRows * kStripPanel];
  VectorStrip plain = s;
  if (!s.partial_out && !direct) plain.bias = nullptr;
  const bool lines = direct && streams_lines(s);
  const auto& run_here = s.lda ? kRunRows : kRunBlocks;
  // Rows read where they lie are cut evenly: a last block of few rows would wait for B.
  const std::int64_t step = s.lda ? even_part(s.m, kBlockRows, 1) : s.block_rows;
  const std::int64_t blocks = ceil_div(s.m, step) * (kStripPanel / kColumns);
  Fetching fetching(s.next, blocks * ceil_div(s.k, kFetchEvery));
  for (std::int64_t row = 0; row < s.m; row += step) {
    const std::int64_t rows = std::min(step, s.m - row);
    for (std::int64_t column = 0; column < kStripPanel; column += kColumns) {
      Ending ending{spare + column, kStripPanel, false, false};
      if (s.partial_out)
        ending = {s.partial_out + row * s.ldp + column, s.ldp, false, false};
      else if (direct)
        ending = {static_cast<float*>(s.c) + row * s.ldc + column, s.ldc, s.accumulate, lines};
      run_here[rows - 1](plain, row, column, ending, fetching);
    }
    if (!s.partial_out && !direct) finish_spare(s, row, rows, spare);
  }
  hwy::FlushStream();
}

RowBlocks blocks() { return {kBlockRows, kBlockStride}; }

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(blocks);
HWY_EXPORT(run);

RowBlocks f32_blocks() { return HWY_DYNAMIC_DISPATCH(blocks)(); }
void run_f32_strip(const VectorStrip& strip) { HWY_DYNAMIC_DISPATCH(run)(strip); }

}  // namespace aloft::cpu
#endif  // HWY_ONCE
