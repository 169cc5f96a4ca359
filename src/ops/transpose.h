// Reordering of axes.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct TransposeAttrs {
  Ints perm;
  static constexpr auto fields() {
    return FieldList{field("perm", &TransposeAttrs::perm, "axis i of the result is axis perm[i]")};
  }
};

// Axis i of the result is axis perm[i] of x.
Tensor transpose(Operand x, const Ints& perm);
// x with two axes exchanged; negative ones count from the back. UserError E0107 where
// there is no such axis.
Tensor swap_axes(Operand x, int a, int b);

}  // namespace aloft
