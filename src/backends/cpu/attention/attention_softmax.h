// What stands between attention's products of bf16, in the vectors of processors that have such
// products: weights from scores, cotangents of scores, and results on their way to memory. Weights
// are rounded to bf16, or split into two planes, on the way out.
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

// Scores [rows][ld] become cap tanh(scale score / cap), up to whole vectors of columns. With dp, of
// the same layout, that becomes (dp - delta) (1 - tanh^2), delta[j] of column j.
struct BendBlock {
  float* scores = nullptr;
  std::int64_t rows = 0, columns = 0, ld = 0;
  float scale = 1, cap = 1;
  float* dp = nullptr;
  const float* delta = nullptr;
};
void bf16_attention_bend(const BendBlock& block);

// Scores [rows][ld] of at most 32 queries against `keys` keys, as weights e^(scale (score - top))
// with zeros up to column `depth`; row r sees the keys below seen + r, and with a window the last
// so many of them. top, sum and alpha (what earlier sums are to be multiplied with) are brought up
// to date, [32] each.
struct WeightsBlock {
  std::int64_t rows = 0, keys = 0, seen = 0, depth = 0;
  std::int64_t window = 0;  // 0: hides nothing
  const float* scores = nullptr;
  std::int64_t ld = 0;
  float scale = 1;  // not negative
  float *top = nullptr, *sum = nullptr, *alpha = nullptr;
  std::uint16_t* weights = nullptr;
  std::int64_t ldw = 0, plane = 0;
  int planes = 1;
};
void bf16_attention_weights(const WeightsBlock& block);

// to[i] = the factors that finish rows, 1 / sum, and lse[i] = log of the sum of e^(scale score),
// i < 32.
void bf16_attention_log_sums(const float* top, const float* sum, float scale, float* to,
                             float* lse);

// Scores and products dO V^T, [keys][32] (a column is a query), as weights P and P (dp - delta).
// Key r is seen by columns from first + r on, and with a window by the first so many of them.
struct CotangentsBlock {
  std::int64_t keys = 0, first = 0;
  std::int64_t window = 0;  // 0: hides nothing
  const float *scores = nullptr, *dp = nullptr;
  float scale = 1;
  const float *lse = nullptr, *delta = nullptr;  // [32]
  std::uint16_t *p = nullptr, *ds = nullptr;     // left operands, rows ldw apart
  std::int64_t ldw = 0, plane = 0;
  std::uint16_t* ds_panel = nullptr;  // the same as a panel of a right operand
  std::int64_t panel_plane = 0;
  int planes = 1;
};
// Zeros follow up to a multiple of 32 keys.
void bf16_attention_cotangents(const CotangentsBlock& block);

// f32 rows as bf16 or f16 rows at `to`, `stride` elements apart; row r times factors[r * step].
struct RowsOut {
  const float* from = nullptr;
  std::int64_t ld = 0, count = 0, width = 0;
  const float* factors = nullptr;
  std::int64_t step = 0;
  void* to = nullptr;
  DType type = DType::BF16;
  std::int64_t stride = 0;
};
void bf16_attention_store(const RowsOut& rows);
// The same from [width][32], at most 32 rows; one factor.
void bf16_attention_store_turned(const RowsOut& rows);

// delta[t] = x_t . y_t over rows of bf16 or f16.
void bf16_attention_dots(const void* x, std::int64_t x_row, const void* y, std::int64_t y_row,
                         DType type, std::int64_t rows, std::int64_t width, float* delta);

}  // namespace aloft::cpu
