// Numbers that tests compute with.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/eager.h"

namespace aloft::e2e {

// `first`, and each an eighth more than the one before: exact in every type for a while.
inline Tensor numbers(const Shape& shape, float first = 1) {
  std::vector<float> values(static_cast<std::size_t>(shape.max_numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i) / 8;
  return from_floats(values, shape);
}

// Spread over [-1/2, 1/2), in another order for each seed.
inline Tensor spread(int seed, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.max_numel()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<float>((i * 37 + static_cast<std::size_t>(seed) * 101) % 23) / 23 - 0.5f;
  return from_floats(values, shape);
}

}  // namespace aloft::e2e
