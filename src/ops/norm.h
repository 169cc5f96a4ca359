// The L1 and L2 norms over axes.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct NormAttrs {
  Ints axes;
  bool keep_dims = false;
  std::int64_t order = 2;
  static constexpr auto fields() {
    using A = NormAttrs;
    return FieldList{
        field("axes", &A::axes, "reduced axes; empty: all; negative from the back"),
        field("keep_dims", &A::keep_dims, "reduced axes stay with length 1"),
        field("order", &A::order, "1: sum of magnitudes, 2: root of the sum of squares")};
  }
};

// order 1: the sum of magnitudes over axes, 2: the root of the sum of squares; no axes: all of
// them. The gradient where the L2 norm is 0 is 0. UserError E0203 for any other order.
Tensor norm(Operand x, const Ints& axes = {}, bool keep_dims = false, std::int64_t order = 2);

}  // namespace aloft
