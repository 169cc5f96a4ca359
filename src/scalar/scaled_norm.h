// The L2 norm of doubles whose squares are no doubles, or lose bits, and the mean of those whose
// sum is none: of f64 alone, as no other type has numbers as large or as small.
#pragma once

#include <cmath>
#include <span>

namespace aloft::scalar {

// Whether a norm that was summed of squares says nothing of elements of at most that magnitude,
// which are all finite.
inline bool needs_scaling(double norm, double largest) {
  constexpr double kLeast = 0x1p-480;  // below, squares are subnormal
  return largest > 0 && std::isfinite(largest) && (std::isinf(norm) || largest < kLeast);
}

// Of those that are finite; the scale is a power of two, which rounds nothing.
inline double scaled_norm(std::span<const double> values, double largest) {
  const int exponent = std::ilogb(largest);
  double squares = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    const double scaled = std::ldexp(v, -exponent);
    squares += scaled * scaled;
  }
  return std::ldexp(std::sqrt(squares), exponent);
}

// Of those that are finite, `count` in number.
inline double scaled_mean(std::span<const double> values, double count) {
  constexpr double kScale = 0x1p-64;  // of more elements than any memory holds
  double sum = 0;
  for (const double v : values)
    if (std::isfinite(v)) sum += v * kScale;
  return sum / count / kScale;
}

}  // namespace aloft::scalar
