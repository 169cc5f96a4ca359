// Sums of a row again, in double: for rows whose sums or squares leave f32's range.
#pragma once

#include <cstdint>

#include "scalar/float_formats.h"

namespace aloft::cpu {

template <class T>
double sum_in_double(const T* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(scalar::f32_of(x[i]));
  return sum;
}

// Of the distances from `mean`.
template <class T>
double squares_in_double(const T* x, std::int64_t n, double mean) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double c = static_cast<double>(scalar::f32_of(x[i])) - mean;
    sum += c * c;
  }
  return sum;
}

}  // namespace aloft::cpu
