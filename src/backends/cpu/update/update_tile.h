// What an optimizer's formula runs over: elements of one tensor, in f32, where they lie or in the
// first cache; and how they are kept. Outputs may be their inputs.
#pragma once

#include <cstdint>
#include <limits>

#include "optim/kind.h"
#include "scalar/block_float.h"
#include "types/dtype.h"

namespace aloft::cpu {

// Elements as they are kept.
struct UpdateTile {
  std::int64_t n = 0;
  const void* gradient = nullptr;  // as it is stored: neither unscaled nor cut
  DType gradient_type = DType::F32;
  // Values in full precision: the masters where there are any, else the parameters. A split master
  // has its bf16 half at `from` and `to`, the remainders (scalar/split_float.h) beside them: words,
  // and bits, which begin at a whole byte.
  const void* from = nullptr;
  void* to = nullptr;
  DType from_type = DType::F32, to_type = DType::F32;
  const std::uint16_t* words = nullptr;
  const std::uint8_t* bits = nullptr;
  std::uint16_t* new_words = nullptr;
  std::uint8_t* new_bits = nullptr;
  // Receives the rounded copy of `to` where there are fp32 masters.
  void* low = nullptr;
  DType low_type = DType::F32;
  bool streams = false;  // `low` is more than caches hold
  // States before the step, as they are kept: of `state_type`, or codes of blocks that begin with
  // the tile, where there are scales (scalar/block_float.h).
  const void* state[optim::kMostStates] = {};
  DType state_type = DType::F32;
  const float* scales[optim::kMostStates] = {};
  scalar::BlockForm form[optim::kMostStates] = {};
};

// The same in f32: what the formula reads and writes.
struct FloatTile {
  std::int64_t n = 0;
  const float* gradient = nullptr;  // neither unscaled nor cut
  const float* from = nullptr;
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
  void (*run)(const FloatTile& tile, const UpdateNumbers& numbers) = nullptr;
  // Adds the tile's part of each sum that the formula needs, of at most kTile elements; null where
  // it needs none.
  void (*add_squares)(const FloatTile& tile, const UpdateNumbers& numbers, double* sums) = nullptr;
  bool squares_read_states = false;
};

}  // namespace aloft::cpu
