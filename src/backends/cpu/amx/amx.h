// bf16 products on the matrix tiles of AMX (Intel, from Sapphire Rapids on), which neither Highway
// 1.0.3 nor a strided oneDNN 2.6 matmul reaches. AMX intrinsics stand in amx_blocks-inl.h and
// its two users, amx.cpp and amx_strip.cpp.
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

// Columns of a packed panel of B, and the step in K: a panel is [k/2][kAmxPanel][2] bf16, rows
// past K and columns past N zero.
inline constexpr std::int64_t kAmxPanel = 32;
inline constexpr std::int64_t kAmxDepth = 32;

// One tile of C: C[m, n] (+)= A[m, k] * B[k, n], rounded once, on the way out.
struct AmxTile {
  std::int64_t m = 0, n = 0, k = 0;  // k a multiple of kAmxDepth
  const std::uint16_t* a = nullptr;  // bf16, row-major
  std::int64_t lda = 0;              // in elements
  const std::uint16_t* b = nullptr;  // ceil(n / kAmxPanel) panels
  std::int64_t panel_stride = 0;     // in elements
  // Operands that are sums of bf16 planes (planes.h), and how many products of two planes are
  // summed: 1 of 1 plane; 3 or 4 of 2; 6 of 3 (see amx_blocks-inl.h).
  int planes = 1, products = 1;
  std::int64_t a_plane = 0, b_plane = 0;  // distance of two planes, in elements
  const float* partial_in = nullptr;      // f32 sums of earlier parts of K, or null
  float* partial_out = nullptr;           // not null: write f32 sums there and leave C alone
  std::int64_t ldp = 0;                   // row stride of both
  void* c = nullptr;
  DType c_type = DType::BF16;  // BF16, F16 or F32
  std::int64_t ldc = 0;
  const float* bias = nullptr;  // n values, or null
  bool accumulate = false;      // add C's old value before rounding
};

// Only where cpu_features().amx_bf16.
void run_amx_tile(const AmxTile& tile);

// While one lives, the calling thread's tiles are laid out for whole blocks, which takes as long as
// a small product: for many of them. No run_amx_tile meanwhile.
class AmxBlocks {
 public:
  AmxBlocks();
  ~AmxBlocks();
  AmxBlocks(const AmxBlocks&) = delete;
  AmxBlocks& operator=(const AmxBlocks&) = delete;

  // `tile` with m a multiple of 32 (rows that nobody wants may hold anything).
  void run(const AmxTile& tile) const;
};

}  // namespace aloft::cpu
