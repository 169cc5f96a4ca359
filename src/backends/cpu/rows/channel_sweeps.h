// Sweeps over a plane: the positions of one channel of one example, which lie side by side in
// NCHW. group_norm and batch_norm are made of them.
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

struct ChannelSums {
  double dy = 0, dy_x = 0;  // sums of dy and of dy (x - mean)
};

// All over n elements of the kernel's type.
struct ChannelSweeps {
  double (*sum)(const void* x, std::int64_t n) = nullptr;
  double (*distances)(const void* x, float mean, std::int64_t n) = nullptr;  // sum of x - mean
  double (*squares)(const void* x, float mean, std::int64_t n) = nullptr;    // of x - mean
  ChannelSums (*products)(const void* dy, const void* x, float mean, std::int64_t n) = nullptr;
  // y = (x - mean) a + b; y may be x.
  void (*affine)(const void* x, float mean, float a, float b, void* y, std::int64_t n) = nullptr;
  // dx = dy p + (x - mean) q + r; dx may be dy or x.
  void (*combine)(const void* dy, const void* x, float mean, float p, float q, float r, void* dx,
                  std::int64_t n) = nullptr;
};

// For f32, bf16, f16.
ChannelSweeps channel_sweeps(DType type);

}  // namespace aloft::cpu
