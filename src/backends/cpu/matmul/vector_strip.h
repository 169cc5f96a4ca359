// What the kernels of matrix products in vectors share (f32_strip.h, bf16_strip.h): 32 columns of C
// at a time. Every element is one chain along K, so that its bits depend on nothing but its row of
// A and its column of B.
//
// K goes by words of 32 bits: an f32, or a pair of bf16 neighbours. Up to 14 x 32 sums stay in
// registers (AVX-512), B is packed (pack.h), A is read where it lies, or from blocks of at most so
// many rows.
#pragma once

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

// Columns of a packed panel of B: [k][32] words, columns past N zero.
inline constexpr std::int64_t kStripPanel = 32;

// The most rows of a block of A, and their distance: row r, word i of a block of packed rows is
// [i * stride + r].
struct RowBlocks {
  std::int64_t rows, stride;
};

// Cache lines that will be needed next, fetched in the shadow of the sums: `steps` times `lines`.
struct FetchAhead {
  const char* at = nullptr;
  std::int64_t lines = 0, line_stride = 0, steps = 0, step_stride = 0;
};

// C[m, n] (+)= A[m, k] B[k, n] (+ bias), n <= 32, rounded once, on the way out.
struct VectorStrip {
  std::int64_t m = 0, n = 0, k = 0;   // k in words
  const std::uint32_t* a = nullptr;   // row-major, or blocks
  std::int64_t lda = 0;               // in words; 0: blocks
  std::int64_t block_rows = 0;        // of a block, the last one has what is left
  const std::uint32_t* b = nullptr;   // the panel
  const float* partial_in = nullptr;  // sums of earlier parts of K, or null
  float* partial_out = nullptr;       // not null: write sums there and leave C alone
  std::int64_t ldp = 0;               // row stride of both, which have whole panels
  void* c = nullptr;
  DType c_type = DType::F32;  // F32, BF16 or F16
  std::int64_t ldc = 0;
  const float* bias = nullptr;  // n values, or null
  bool accumulate = false;      // add C's old value before rounding
  bool stream = false;          // past the caches, where C's rows are whole cache lines
  FetchAhead next;
};

// Whether the strip may and shall be written a whole cache line at a time.
inline bool streams_lines(const VectorStrip& s) {
  const auto element = static_cast<std::int64_t>(size_of(s.c_type));
  return s.stream && !s.accumulate && s.n == kStripPanel &&
         reinterpret_cast<std::uintptr_t>(s.c) % 64 == 0 && s.ldc * element % 64 == 0;
}

// Walks over the lines of a FetchAhead, a share of them each turn: once in kFetchEvery words of K.
inline constexpr std::int64_t kFetchEvery = 16;
class Fetching {
 public:
  Fetching(const FetchAhead& f, std::int64_t turns)
      : at_(f.at),
        lines_(f.lines),
        line_stride_(f.line_stride),
        step_stride_(f.step_stride - f.lines * f.line_stride),
        left_(f.lines * f.steps),
        at_once_(turns > 0 ? (left_ + turns - 1) / turns : 0) {}
  HWY_INLINE void step() {
    for (std::int64_t i = std::min(at_once_, left_); i > 0; --i, --left_) {
      hwy::Prefetch(at_);
      at_ += line_stride_;
      if (++line_ == lines_) at_ += step_stride_, line_ = 0;
    }
  }

 private:
  const char* at_;
  std::int64_t line_ = 0, lines_, line_stride_, step_stride_, left_, at_once_;
};

// Arrays of vectors are registers only where every index is known.
#if defined(__clang__)
#define ALOFT_UNROLL _Pragma("unroll")
#else
#define ALOFT_UNROLL _Pragma("GCC unroll 16")
#endif

}  // namespace aloft::cpu
