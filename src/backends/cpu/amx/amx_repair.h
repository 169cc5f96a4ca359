// Sums of products of planes (planes.h) that came out infinite or NaN. The planes of an infinity
// are (inf, 0), and inf * 0 would turn an infinite result into NaN; a sum of rounded-up halves can
// overflow where the product does not. A row with a NaN or an infinity that its operands do not
// explain is summed again, plainly.
#pragma once

#include <cstdint>

namespace aloft::cpu {

// 32 columns of sums: from + A B, in bf16 planes. k is a multiple of 32.
struct SummedPlanes {
  int planes = 2;
  std::int64_t k = 0;
  const std::uint16_t* a = nullptr;  // row-major, lda
  std::int64_t lda = 0, a_plane = 0;
  const std::uint16_t* b = nullptr;  // a packed panel (amx.h)
  std::int64_t b_plane = 0;
  const float* from = nullptr;  // sums of earlier parts of K, row stride ldp, or null
  std::int64_t ldp = 0;
};

// Of the first `rows` rows of `sums` (row stride 32, 64-byte aligned) and the columns whose bits
// are set in `columns`.
void repair_sums(const SummedPlanes& summed, std::int64_t rows, std::uint32_t columns, float* sums);

}  // namespace aloft::cpu
