// Matrix products.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct MatmulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
  DType out = DType::F32;  // element type of the result, where `same_out` is false
  bool same_out = true;    // the result has the operands' element type
  static constexpr auto fields() {
    using A = MatmulAttrs;
    return FieldList{field("transpose_a", &A::transpose_a, "a's last two axes are swapped"),
                     field("transpose_b", &A::transpose_b, "b's last two axes are swapped"),
                     field("out", &A::out, "element type of the result unless same_out"),
                     field("same_out", &A::same_out, "the result has the operands' type")};
  }
};

// [..., m, k] x [..., k, n] -> [..., m, n]; leading axes broadcast as in numpy. Sums in fp32 or
// wider whatever the operands' type.
Tensor matmul(Operand a, Operand b, bool transpose_a = false, bool transpose_b = false);

}  // namespace aloft
