// Batch normalisation per channel, with running statistics that come in and go out as values.
#pragma once

#include "graph/tensor.h"

namespace aloft {

struct BatchNormAttrs {
  bool training = true;
  double momentum = 0.1;
  double eps = 1e-5;
  static constexpr auto fields() {
    using A = BatchNormAttrs;
    return std::tuple{
        field("training", &A::training, "normalise with the batch's statistics, else the running"),
        field("momentum", &A::momentum, "weight of the batch in the new running statistics"),
        field("eps", &A::eps, "added to the variance")};
  }
};

struct BatchNormGradAttrs {
  bool training = true;
  static constexpr auto fields() {
    return std::tuple{field("training", &BatchNormGradAttrs::training,
                            "mean and rstd depend on x: they are the batch's")};
  }
};

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
