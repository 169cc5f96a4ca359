// f32 products, 32 columns of C at a time, in vectors: the tile kernel where there are no matrix
// units for the types. Every element is one chain of fused multiply-adds along K, so that its bits
// depend on nothing but its row of A and its column of B.
//
// Up to 14 x 32 sums stay in registers (AVX-512; 6 x 16 with AVX2), B is packed (pack.h), A is read
// where it lies, or from blocks of at most so many rows. Measured on two threads: 450 to 470
// GFLOP/s with operands in the second cache, where the library's best layout reaches 413
// (docs/decisions/0004).
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

// Columns of a packed panel of B: [k][32] f32, columns past N zero.
inline constexpr std::int64_t kF32Panel = 32;

// The most rows of a block of A (14 or 6), and their distance: row r, column i of a block of packed
// rows is [i * stride + r].
struct F32Blocks {
  std::int64_t rows, stride;
};
F32Blocks f32_blocks();

// Cache lines that will be needed next, fetched in the shadow of the sums: `steps` times `lines`.
struct FetchAhead {
  const char* at = nullptr;
  std::int64_t lines = 0, line_stride = 0, steps = 0, step_stride = 0;
};

// C[m, n] (+)= A[m, k] B[k, n] (+ bias), n <= 32, rounded once, on the way out.
struct F32Strip {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;           // row-major, or blocks
  std::int64_t lda = 0;               // 0: blocks
  std::int64_t block_rows = 0;        // of a block, the last one has what is left
  const float* b = nullptr;           // the panel
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

void run_f32_strip(const F32Strip& strip);

}  // namespace aloft::cpu
