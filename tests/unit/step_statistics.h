// What a step left, made up: for tests of dumps.
#pragma once

#include <cstddef>
#include <vector>

#include "types/statistics.h"

namespace aloft {

constexpr std::size_t kStatisticsOfValue = TensorStatistics::kNumbers;

// The statistics of `count` values, the k-th of which has the norm k.
inline std::vector<double> step_statistics(std::size_t count) {
  std::vector<double> all(count * kStatisticsOfValue);
  for (std::size_t k = 0; k < count; ++k)
    TensorStatistics{.max = 1, .min = -1, .norm = static_cast<double>(k), .elements = 6}.put(
        all.data() + k * kStatisticsOfValue);
  return all;
}

}  // namespace aloft
