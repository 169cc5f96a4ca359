// Layer normalisation over the trailing axes.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct LayerNormAttrs {
  std::int64_t axes = 1;
  double eps = 1e-5;
  static constexpr auto fields() {
    using A = LayerNormAttrs;
    return FieldList{field("axes", &A::axes, "number of trailing axes normalised together"),
                     field("eps", &A::eps, "added to the variance")};
  }
};

struct LayerNormGradAttrs {
  std::int64_t axes = 1;
  bool shift = true;
  static constexpr auto fields() {
    using A = LayerNormGradAttrs;
    return FieldList{field("axes", &A::axes, "number of trailing axes normalised together"),
                     field("shift", &A::shift, "the forward op had a shift: give its gradient")};
  }
};

// (x - mean) / sqrt(variance + eps) * scale + shift, with the biased variance; scale and shift
// have the shape of x's trailing `axes` axes, in x's type or f32, and may be left out (undefined):
// both, or the shift alone. Statistics are computed and kept in f32.
Tensor layer_norm(Operand x, const Tensor& scale, const Tensor& shift, double eps = 1e-5,
                  std::int64_t axes = 1);

}  // namespace aloft
