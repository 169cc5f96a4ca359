// Copies of matmul operands in the layouts that the tile kernels read: dense row-major, possibly
// transposed and widened, and the pair-interleaved panels of amx.h. Single-threaded: the caller
// shares out pieces. Copies and widenings are exact, NaN and infinity included; what planes hold of
// a value is in planes.h.
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

// A matrix X[rows, cols] in memory: X[r][c] is data[r * ld + c], or data[c * ld + r] if transposed.
struct MatrixView {
  const void* data = nullptr;
  DType type = DType::F32;
  std::int64_t ld = 0;
  bool transposed = false;

  // The same matrix from (row, col) on.
  MatrixView from(std::int64_t row, std::int64_t col) const;
};

// What a tile kernel reads.
enum class PackedType {
  F32,     // from F32, BF16 or F16
  Bf16,    // from BF16
  Bf16x2,  // from F16 or F32: two bf16 planes (planes.h)
  Bf16x3,  // from F32: three
};
constexpr int planes_of(PackedType t) {
  return t == PackedType::Bf16x3 ? 3 : t == PackedType::Bf16x2 ? 2 : 1;
}

// Writes X[0..rows, 0..cols] row-major with row stride ldd, and zeros up to column `cols_padded`.
// Each plane lies `plane` elements after the one before. To F32 only where X lies in rows.
void pack_dense(const MatrixView& x, std::int64_t rows, std::int64_t cols, std::int64_t cols_padded,
                PackedType to, void* dst, std::int64_t ldd, std::int64_t plane);

// Writes one panel of B = X[k, n], n <= 32: [k_padded/2][32][2], zeros past k and n. Not to
// F32.
void pack_panel(const MatrixView& x, std::int64_t k, std::int64_t n, std::int64_t k_padded,
                PackedType to, std::uint16_t* dst, std::int64_t plane);

// Writes one panel of B = X[k, n], n <= 32, of any of the three types, as [k][32] f32, zeros past
// n.
void pack_f32_panel(const MatrixView& x, std::int64_t k, std::int64_t n, float* dst);

// Writes X[0..rows, 0..k], stored transposed, in blocks of `block` rows: word i of row r, an f32 or
// a pair of bf16 (zero past k), is [r / block][i][r % block] with `stride` (a vector, 8 or 16)
// words from one i to the next. `there` rows may be read. To F32 from any of the three types, to
// Bf16 from BF16.
void pack_blocks(const MatrixView& x, std::int64_t rows, std::int64_t there, std::int64_t k,
                 std::int64_t block, std::int64_t stride, PackedType to, void* dst);

}  // namespace aloft::cpu
