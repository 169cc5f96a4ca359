// Operands and results of the ops that end a training step, for those who build it; and what the
// update ops (sgd_update, adam_update) share: inference, samples, the frame of their evaluation.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/tensor.h"
#include "ops/op.h"
#include "ops/update_layout.h"

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

// The tensors that one update op works on, in one order. `masters` is empty or as long as
// `parameters`; each list of moments is as long as `parameters`.
struct UpdateOperands {
  Tensor lr;          // f32[]
  Tensor multiplier;  // f32[]: what gradients are multiplied with (grad_stats)
  Tensor finite;      // i32[]: 0 leaves everything as it is
  Tensor applied;     // i64[]: updates applied before this one
  std::vector<Tensor> parameters, gradients, masters;
  std::vector<std::vector<Tensor>> moments;
};

struct UpdateResults {
  std::vector<Tensor> parameters, masters;
  std::vector<std::vector<Tensor>> moments;
};

UpdateResults emit_update(Name op, const Attrs& attrs, const UpdateOperands& operands);

void infer_update(const UpdateLayout& layout, const Ints& decay, Infer& c);

// One element's state during an update: `value` is the master where there is one.
struct UpdateElement {
  double value, gradient;
  double moment[2];
};
// Applies `step` to every element of every tensor, or copies where finite is 0. `decays` says
// whether weight decay applies to the element's tensor.
void evaluate_update(const UpdateLayout& layout, const Ints& decay, EvalCall& c,
                     const std::function<void(UpdateElement&, bool decays)>& step);

// Operands of a sample call: three small tensors of odd sizes, parameters and gradients of the
// given types.
std::vector<SampleInput> update_sample(const UpdateLayout& layout, DType parameter, DType gradient,
                                       bool finite, std::int64_t applied);

}  // namespace aloft
