// Results of the ops that end a training step, for those who build it.
#pragma once

#include "graph/tensor.h"

namespace aloft {

struct GradStats {
  Tensor norm;        // f32[]: global L2 norm of the gradients divided by the scale
  Tensor multiplier;  // f32[]: what every gradient must be multiplied with
  Tensor finite;      // i32[]: 1 where all elements, and the norm, are finite
  Tensor culprit;     // i32[]: index of the first gradient with a non-finite element, or -1
};

// The loss scaler's state on the device (scalar::ScalerState).
struct ScalerTensors {
  Tensor scale;         // f32[]
  Tensor good_steps;    // i32[]: clean steps since the scale last changed
  Tensor overflow_run;  // i32[]: overflowed steps in a row
  Tensor skipped;       // i64[]: overflowed steps in all
};

// What linear_cross_entropy_sweep gives.
struct LossAndGradients {
  Tensor loss;     // f32[]
  Tensor dx;       // as x
  Tensor dweight;  // as weight
};

}  // namespace aloft
