// What an optimizer's formula runs over: elements of one tensor as f32, where they lie or widened
// into the first cache. Outputs may be their inputs.
#pragma once

#include <cstdint>
#include <limits>

#include "optim/kind.h"

namespace aloft::cpu {

struct UpdateTile {
  std::int64_t n = 0;
  const float* gradient = nullptr;  // as it is stored: neither unscaled nor cut
  const float* from = nullptr;      // values in full precision
  float* to = nullptr;
  const float* state[optim::kMostStates] = {};
  float* new_state[optim::kMostStates] = {};
};

// Constants of one tensor's step, in fp32: optim::StepNumbers and TensorNumbers, and `decays` as
// flag 0.
struct UpdateNumbers {
  float multiplier = 0;
  float limit = std::numeric_limits<float>::infinity();  // of a gradient's size, unscaled
  float number[optim::kMostNumbers] = {};
  float tensor[optim::kMostNumbers] = {};
  bool flag[optim::kMostFlags] = {};
};

// A formula in vectors.
struct UpdateVectors {
  void (*run)(const UpdateTile& tile, const UpdateNumbers& numbers) = nullptr;
  // Adds the tile's part of each sum that the formula needs; null where it needs none.
  void (*add_squares)(const UpdateTile& tile, const UpdateNumbers& numbers, double* sums) = nullptr;
};

}  // namespace aloft::cpu
