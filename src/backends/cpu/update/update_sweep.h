// The frame of every optimizer's kernels: one sweep over all tensors of an update op, shared out in
// chunks; an optimizer's formula, in vectors, is the code for a run of elements.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "optim/kind.h"
#include "runtime/kernel.h"

namespace aloft::cpu {

// One run of elements of one tensor. `from` and `to` are where the values lie in full precision:
// the masters where there are any, else the parameters. `low` receives the rounded copy of `to`
// where there are masters. A split master has its bf16 half at `from` and `to`, the remainders
// (scalar/split_float.h) beside them. Outputs may be their inputs.
struct UpdateRun {
  std::int64_t n = 0;
  const void* gradient = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  void* low = nullptr;
  const std::uint16_t* words = nullptr;  // remainders: words and bits; bits begin at a whole byte
  const std::uint8_t* bits = nullptr;
  std::uint16_t* new_words = nullptr;
  std::uint8_t* new_bits = nullptr;
  const float* state[optim::kMostStates] = {};
  float* new_state[optim::kMostStates] = {};
  DType gradient_type = DType::F32, value_type = DType::F32, low_type = DType::F32;
  bool streams = false;  // `low` is more than caches hold
};

// Constants of one run, in fp32: optim::StepNumbers and TensorNumbers, and `decays` as flag 0.
struct UpdateNumbers {
  float multiplier = 0;
  float limit = std::numeric_limits<float>::infinity();  // of a gradient's size, unscaled
  float number[optim::kMostNumbers] = {};
  float tensor[optim::kMostNumbers] = {};
  bool flag[optim::kMostFlags] = {};
};

// A formula in vectors.
struct UpdateVectors {
  void (*run)(const UpdateRun& run, const UpdateNumbers& numbers) = nullptr;
  // Adds the run's part of each sum that the formula needs; null where it needs none.
  void (*add_squares)(const UpdateRun& run, const UpdateNumbers& numbers, double* sums) = nullptr;
};

// Split masters stand beside bf16 parameters.
std::optional<Refusal> accepts_update(const CallSpec& call);
// <name>_update, and <name>_sums.
std::unique_ptr<Prepared> prepare_update(const optim::FormulaRecord& formula,
                                         const UpdateVectors& vectors, const CallSpec& call);
std::unique_ptr<Prepared> prepare_sums(const optim::FormulaRecord& formula,
                                       const UpdateVectors& vectors, const CallSpec& call);
// <name>_numbers.
std::unique_ptr<Prepared> prepare_numbers(const optim::FormulaRecord& formula,
                                          const CallSpec& call);
// Each parameter, master and state may be overwritten by its new value.
std::vector<std::pair<int, int>> update_pairs(const optim::FormulaRecord& formula,
                                              const CallSpec& call);

}  // namespace aloft::cpu
