// The frame of every optimizer's kernel: one sweep over all tensors of an update op, shared out in
// chunks; an optimizer supplies the code for a run of elements.
#pragma once

#include <memory>

#include "ops/update_layout.h"
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
  const float* moment[2] = {};
  float* new_moment[2] = {};
  DType gradient_type = DType::F32, value_type = DType::F32, low_type = DType::F32;
  bool decays = false;
  bool streams = false;  // `low` is more than caches hold
};

// Constants of one step, in fp32, computed by the optimizer from the learning rate and the count
// of applied updates.
struct UpdateNumbers {
  float multiplier = 0;
  float number[8] = {};
  bool flag = false;
};

class UpdateCode {
 public:
  virtual ~UpdateCode() = default;
  virtual UpdateNumbers numbers(double lr, std::int64_t applied) const = 0;
  virtual void run(const UpdateRun& run, const UpdateNumbers& numbers) const = 0;
};

// Split masters stand beside bf16 parameters.
std::optional<Refusal> accepts_update(const CallSpec& call, const UpdateLayout& layout);
std::unique_ptr<Prepared> prepare_update(const CallSpec& call, const UpdateLayout& layout,
                                         std::vector<std::int64_t> decay,
                                         std::unique_ptr<UpdateCode> code);
// Each parameter, master and moment may be overwritten by its new value.
std::vector<std::pair<int, int>> update_pairs(const UpdateLayout& layout);

}  // namespace aloft::cpu
