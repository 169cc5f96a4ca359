// The one table of tolerances: how far a result may lie from the meaning in double. A result is
// computed in f32 (f64 for f64), summed over `length` terms, and rounded once to its type.
#pragma once

#include <cmath>
#include <cstdint>

#include "types/dtype.h"

namespace aloft {

// Half the distance of neighbours at 1: the largest relative error of one rounding.
constexpr double unit_roundoff(DType t) {
  switch (t) {
    case DType::F64:
      return 0x1p-53;
    case DType::F32:
      return 0x1p-24;
    case DType::F16:
      return 0x1p-11;
    case DType::BF16:
      return 0x1p-8;
    default:
      return 0;
  }
}

constexpr double smallest_subnormal(DType t) {
  switch (t) {
    case DType::F64:
      return 0x0.0000000000001p-1022;
    case DType::F32:
      return 0x1p-149;
    case DType::F16:
      return 0x1p-24;
    case DType::BF16:
      return 0x1p-133;
    default:
      return 0;
  }
}

// |result - meaning| <= relative * |meaning| + absolute * scale + floor, where `scale` is the
// largest magnitude among the terms that were summed (0 where nothing was).
struct Tolerance {
  double relative = 0, absolute = 0, floor = 0;
};

// `length`: how many terms a result sums; 1 for an element-wise function. Errors of a sum grow with
// the square root of its length (rounding errors are as good as independent, and partial sums stay
// near the largest term: of a long chain whose partial sums outgrow it, bound those); elementary
// functions are within 4 units in the last place (8 roundoffs) of f32, and a chain of a few stays
// within 16.
inline Tolerance tolerance_of(DType stored, std::int64_t length = 1) {
  if (!is_float(stored)) return {};
  const double compute = unit_roundoff(stored == DType::F64 ? DType::F64 : DType::F32);
  const double terms = std::sqrt(static_cast<double>(length < 1 ? 1 : length));
  Tolerance t;
  t.relative = (is_low(stored) ? 1.01 * unit_roundoff(stored) : 0) + 16 * compute;
  t.absolute = length > 1 ? 2 * compute * (4 + terms) : 0;
  t.floor = 2 * smallest_subnormal(stored);
  // A factor behind a subnormal intermediate result multiplies its absolute error.
  if (stored != DType::F64) t.floor += 32 * smallest_subnormal(DType::F32);
  return t;
}

// That bound, for one result.
inline double allowed_error(DType stored, std::int64_t length, double meaning, double scale = 0) {
  const Tolerance t = tolerance_of(stored, length);
  return t.relative * std::abs(meaning) + t.absolute * scale + t.floor;
}

// Behind a chain of `roundings` to a low type, relative to a result's largest magnitude. Each is as
// good as independent of the others, so that errors add as the steps of a random walk do. One that
// is spread evenly over [-u, u] has the deviation u / sqrt(3): the bound lies 3.5 deviations out.
inline double chain_tolerance(DType rounded_to, int roundings) {
  return 2 * unit_roundoff(rounded_to) * std::sqrt(static_cast<double>(roundings));
}

}  // namespace aloft
