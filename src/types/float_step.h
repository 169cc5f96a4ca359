// How far apart the numbers of a float type are.
#pragma once

#include <algorithm>
#include <cmath>

#include "types/dtype.h"

namespace aloft {

// How many binary digits stand behind the point, and the exponent below which there are no more.
struct FloatDigits {
  int behind_point = 23, least_exponent = -126;
};

constexpr FloatDigits digits_of(DType t) {
  switch (t) {
    case DType::F64:
      return {52, -1022};
    case DType::F16:
      return {10, -14};
    case DType::BF16:
      return {7, -126};
    default:
      return {};
  }
}

// Of a finite number; of 0 that of the smallest.
inline int exponent_at(DType t, double v) {
  const int least = digits_of(t).least_exponent;
  return v == 0 ? least : std::max(std::ilogb(v), least);
}

// The distance to the next number of the type.
inline double step_at(DType t, double v) {
  return std::ldexp(1.0, exponent_at(t, v) - digits_of(t).behind_point);
}

// How many steps from number to number it is from one finite number to another, through 0 where
// their signs differ; part of a step where they are no numbers of the type.
inline double steps_between(DType t, double a, double b) {
  const FloatDigits digits = digits_of(t);
  const auto own = [&](double v) { return std::abs(v) / step_at(t, v); };  // in steps of its own
  // Numbers with one exponent, of which there are as many for each.
  const auto below = [&](double v) {
    return std::ldexp(exponent_at(t, v) - digits.least_exponent, digits.behind_point);
  };
  if (std::signbit(a) != std::signbit(b)) return below(a) + own(a) + below(b) + own(b);
  return std::abs(below(a) - below(b) + (own(a) - own(b)));
}

}  // namespace aloft
