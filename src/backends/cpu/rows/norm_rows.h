// One row at a time of layer_norm and rms_norm, forward and backward, in one visit of the first
// cache: statistics, normalisation, scale and shift; and backwards the row's part of the
// parameters' gradients.
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

struct NormStatistics {
  float mean = 0, rstd = 0;  // mean stays 0 where the row is not centred
};

// A row's forward pass. x, addend, sum, y: n elements of the kernel's type.
struct NormForward {
  const void* x;
  const void* addend;  // with x added to it the row that is normalised; for forward_of_sum
  void* sum;           // where that goes
  void* y;
  double eps;
  const float* scale;  // null: 1
  const float* shift;  // null: 0
};

// A row's backward pass. residual, dy, x, dx: n elements of the kernel's type.
struct NormBackward {
  const void* residual;  // added to dx; null: 0
  const void* dy;
  const void* x;
  void* dx;
  NormStatistics statistics;
  const float* scale;  // null: 1
  float* dscale;       // the row's part is added; null: not wanted
  float* dshift;
};

struct NormRows {
  // y = (x - mean) * rstd * scale + shift.
  NormStatistics (*forward)(const NormForward& row, std::int64_t n) = nullptr;
  NormStatistics (*forward_of_sum)(const NormForward& row, std::int64_t n) = nullptr;
  void (*backward)(const NormBackward& row, std::int64_t n) = nullptr;
};

// For f32, bf16, f16. Without `centred` the mean is taken to be 0 (rms_norm).
NormRows norm_rows(DType type, bool centred);

}  // namespace aloft::cpu
