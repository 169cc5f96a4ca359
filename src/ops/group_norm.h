// Normalisation over groups of channels of one example.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct GroupNormAttrs {
  std::int64_t groups = 1;
  double eps = 1e-5;
  static constexpr auto fields() {
    using A = GroupNormAttrs;
    return FieldList{field("groups", &A::groups, "number of groups; divides the channels"),
                     field("eps", &A::eps, "added to the variance")};
  }
};

struct GroupNormGradAttrs {
  std::int64_t groups = 1;
  bool shift = true;
  static constexpr auto fields() {
    using A = GroupNormGradAttrs;
    return FieldList{field("groups", &A::groups, "number of groups; divides the channels"),
                     field("shift", &A::shift, "the forward op had a shift: give its gradient")};
  }
};

// x [N, C, ...]: (x - mean) / sqrt(variance + eps) * scale + shift with mean and biased variance
// over a group's channels and all positions; scale and shift [C], in x's type or f32, may be left
// out (undefined): both, or the shift alone. Statistics [N, groups] are kept in f32.
Tensor group_norm(Operand x, std::int64_t groups, const Tensor& scale, const Tensor& shift,
                  double eps = 1e-5);

}  // namespace aloft
