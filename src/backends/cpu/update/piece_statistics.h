// Statistics of a run of floats (types/statistics.h), of which several are put together: the pieces
// of a tensor. Sums are in lanes that are added in a fixed order: the same bits on every target.
//
// f32 and f64 are summed in double, element by element. Of bf16 and f16, and of what an optimizer's
// step adds, 16 elements at a time are summed in f32, and those sums in double: half of the
// instructions. At most 9 roundings to f32 come one behind the other, that of an f32's square the
// first: a sum is wrong by at most 9 * 2^-24 of that of the magnitudes, a sum of squares by that
// much of itself.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "types/dtype.h"
#include "types/statistics.h"

namespace aloft::cpu {

// What is known of some elements. `max` and `min` mean nothing where one is NaN.
struct PieceStatistics {
  double sum = 0, squares = 0;
  double max = -std::numeric_limits<double>::infinity();
  double min = std::numeric_limits<double>::infinity();
  std::int64_t nan = 0, positive_inf = 0, negative_inf = 0;
  std::int64_t zeros = 0, underflowed = 0, saturated = 0;

  // Into all but the sums.
  void meet(double x, const FloatEdges& edges) {
    const double size = std::abs(x);
    extend(x, x);
    nan += std::isnan(x);
    positive_inf += std::isinf(x) && x > 0;
    negative_inf += std::isinf(x) && x < 0;
    zeros += x == 0;
    underflowed += x != 0 && size < edges.least_normal;
    saturated += size == edges.largest;
  }
  // NaN extends nothing.
  void extend(double least, double most) {
    if (least < min) min = least;
    if (most > max) max = most;
  }
};

// The same while elements are added: the sums by lanes.
struct StatisticsInLanes {
  static constexpr std::int64_t kLanes = 32;
  alignas(64) double sums[kLanes] = {};
  alignas(64) double squares[kLanes] = {};
  PieceStatistics others;
};

// Adds the n floats at p (any float type).
void add_statistics(DType type, const void* p, std::int64_t n, StatisticsInLanes& to);
PieceStatistics together(const StatisticsInLanes& lanes);

void add(PieceStatistics& all, const PieceStatistics& piece);
TensorStatistics numbers_of(const PieceStatistics& s, std::int64_t elements);

}  // namespace aloft::cpu
