// Statistics of a run of floats (types/statistics.h), of which several are put together: the pieces
// of a tensor. Sums are in double, in 32 lanes that are added in a fixed order: the same bits on
// every target.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "types/dtype.h"
#include "types/statistics.h"

namespace aloft::cpu {

// What is known of some elements.
struct PieceStatistics {
  double sum = 0, squares = 0;
  double max = -std::numeric_limits<double>::infinity();  // of those that are no NaN
  double min = std::numeric_limits<double>::infinity();
  std::int64_t nan = 0, positive_inf = 0, negative_inf = 0;
  std::int64_t zeros = 0, underflowed = 0, saturated = 0;

  void count(double x, const FloatEdges& edges) {
    const double size = std::abs(x);
    nan += std::isnan(x);
    positive_inf += std::isinf(x) && x > 0;
    negative_inf += std::isinf(x) && x < 0;
    zeros += x == 0;
    underflowed += x != 0 && size < edges.least_normal;
    saturated += size == edges.largest;
  }
};

// Puts the n floats at p (any float type) to those that s has.
void add_statistics(DType type, const void* p, std::int64_t n, PieceStatistics& s);
void add(PieceStatistics& all, const PieceStatistics& piece);
TensorStatistics numbers_of(const PieceStatistics& s, std::int64_t elements);

}  // namespace aloft::cpu
