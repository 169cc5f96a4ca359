// Products of one matrix with itself, X X^T and X^T X (Muon's): half of the work, and the same
// bits.
#include <omp.h>

#include <algorithm>

#include "backends/cpu/matmul/matmul_state.h"

namespace aloft::cpu {
namespace {

// to[j][i] = from[i][j] for a square of C, both with the row stride n.
template <class T>
void turn(const T* from, T* to, std::int64_t n, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i) to[j * n + i] = from[i * n + j];
}

// What lies above the diagonal, by squares of which threads take turns.
template <class T>
void mirror_all(T* c, std::int64_t n) {
  constexpr std::int64_t kSquare = 32;
  const std::int64_t squares = ceil_div(n, kSquare);
  const int thread = omp_get_thread_num(), team = omp_get_num_threads();
  for (std::int64_t r = thread; r < squares; r += team)
    for (std::int64_t q = 0; q <= r; ++q) {
      const std::int64_t row = r * kSquare, col = q * kSquare;
      const std::int64_t rows = std::min(kSquare, n - row), cols = std::min(kSquare, n - col);
      if (q < r) {
        turn(c + row * n + col, c + col * n + row, n, rows, cols);
      } else {
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < i; ++j)
            c[(row + j) * n + row + i] = c[(row + i) * n + row + j];
      }
    }
}

}  // namespace

bool MatmulGrid::State::is_symmetric(const MatmulPointers& p, const MatmulActual& actual) const {
  return by_strips && !engine.amx && p.a == p.b && spec.a == spec.b && spec.batch == 1 &&
         spec.transpose_a != spec.transpose_b && spec.m == spec.n && actual.m == spec.m &&
         !spec.bias && !spec.accumulate && spec.a_offset.empty() && spec.b_offset.empty();
}

// Rows from the strip's first column on; a copied A begins at whole blocks.
MatmulGrid::State::StripPlace MatmulGrid::State::below_diagonal(StripPlace at) const {
  std::int64_t above = std::clamp(at.col - at.row, std::int64_t{0}, at.rows);
  if (a_blocks && above < at.rows) above -= above % a_blocks->rows;
  at.row += above, at.rows -= above;
  return at;
}

void MatmulGrid::State::mirror(const MatmulPointers& p) const {
  if (spec.c == DType::F32)
    mirror_all(static_cast<float*>(p.c), spec.n);
  else
    mirror_all(static_cast<std::uint16_t*>(p.c), spec.n);
}

}  // namespace aloft::cpu
