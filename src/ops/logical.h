// Logic on bool tensors, questions about floats, and whether any or all elements hold.
#pragma once

#include "ops/reduce.h"

namespace aloft {

Tensor logical_and(Operand a, Operand b);
Tensor logical_or(Operand a, Operand b);
Tensor logical_xor(Operand a, Operand b);
Tensor logical_not(Operand x);
Tensor is_nan(Operand x);
Tensor is_inf(Operand x);  // of either sign
Tensor is_finite(Operand x);
// Of any type: an element holds where it is not 0. Over nothing any is false, all is true.
Tensor any(Operand x, const Ints& axes = {}, bool keep_dims = false);
Tensor all(Operand x, const Ints& axes = {}, bool keep_dims = false);

}  // namespace aloft
