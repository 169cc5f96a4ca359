// Packing a column or a row of tiles of a wave.
#include <algorithm>

#include "backends/cpu/amx/amx.h"
#include "backends/cpu/matmul/matmul_state.h"

namespace aloft::cpu {

void MatmulGrid::State::pack_a_rows(const MatmulPointers& p, const MatmulWave& w, std::int64_t b,
                                    std::int64_t first, std::int64_t rows) const {
  const std::int64_t element = size_of(engine.type), k = w.k1 - w.k0;
  char* dst = static_cast<char*>(p.scratch) + a_at + (b - w.b0) * a_batch * element;
  const MatrixView source = a_view(p, b).from(w.m0 + first, w.k0);
  if (a_blocks) {
    const std::int64_t block = a_blocks->stride * round_up(k, engine.unit_k()) * element;
    pack_blocks(source, rows, spec.m - w.m0 - first, k, a_blocks->rows, a_blocks->stride,
                engine.packed, dst + first / a_blocks->rows * block);
    return;
  }
  pack_dense(source, rows, k, w.depth, engine.packed, dst + first * packed_lda * element,
             packed_lda, a_elements);
}

void MatmulGrid::State::pack_a_tiles(const MatmulPointers& p, const MatmulWave& w, std::int64_t b,
                                     std::int64_t row) const {
  const std::int64_t first = row - w.m0, rows = std::min(tiling.tm, w.m1 - row);
  // A few rows at a time: a transposed source gives whole cache lines for so many.
  for (std::int64_t r = 0; r < rows; r += kPieceRows)
    pack_a_rows(p, w, b, first + r, std::min(kPieceRows, rows - r));
}

void MatmulGrid::State::pack_b_tiles(const MatmulPointers& p, const MatmulWave& w, std::int64_t b,
                                     std::int64_t col) const {
  const std::int64_t element = size_of(engine.type), first = col - w.n0;
  const std::int64_t cols = std::min(tiling.tn, w.n1 - col);
  char* dst = static_cast<char*>(p.scratch) + b_at + (b - w.b0) * b_batch * element;
  const MatrixView source = b_view(p, b).from(w.k0, w.n0);
  for (std::int64_t c = first; c < first + cols; c += kAmxPanel)
    pack_panel(source.from(0, c), w.k1 - w.k0, std::min(kAmxPanel, first + cols - c), w.depth,
               engine.packed, reinterpret_cast<std::uint16_t*>(dst) + c * tiling.wave_k,
               b_elements);
}

}  // namespace aloft::cpu
