// Medians: by which rules tell the unusual, and what a measurement took.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace aloft::scalar {

// Of an even number the lower of the two in the middle: one of the values, so that no sum rounds.
// There is at least one.
inline double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of an even number the upper of the two in the middle; 0 of none.
inline double upper_median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace aloft::scalar
