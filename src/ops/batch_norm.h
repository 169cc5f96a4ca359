// Batch normalisation per channel, with running statistics that come in and go out as values.
#pragma once

#include "graph/tensor.h"
#include "ops/batch_norm_attrs.h"

namespace aloft {

// What batch_norm() gives: y in x's shape, and the statistics, [C], f32.
struct BatchNormResult {
  Tensor y, running_mean, running_var;  // in evaluation the running statistics are unchanged
};

// x [N, C, ...]; scale, shift, running_mean, running_var [C], scale and shift in x's type or f32,
// the running statistics in f32. In training y uses the batch's mean and biased variance, and the
// new running values are (1 - momentum) old + momentum batch, with the unbiased variance (over one
// value a channel: the biased one, 0), as in PyTorch.
BatchNormResult batch_norm(Operand x, Operand scale, Operand shift, Operand running_mean,
                           Operand running_var, const BatchNormAttrs& attrs = {});

}  // namespace aloft
