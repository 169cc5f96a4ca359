// Root-mean-square normalisation over the last axis.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct RmsNormAttrs {
  double eps = 1e-6;
  static constexpr auto fields() {
    return FieldList{field("eps", &RmsNormAttrs::eps, "added to the mean square")};
  }
};

// x / sqrt(mean(x^2) + eps) * scale; scale [last axis of x], in x's type or f32, may be undefined.
// The statistic is computed and kept in f32.
Tensor rms_norm(Operand x, const Tensor& scale, double eps = 1e-6);

}  // namespace aloft
