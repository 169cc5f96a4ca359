// Logic on bool tensors, questions about floats, and whether any or all elements hold.
#pragma once

#include "ops/reduce.h"

namespace aloft {

Tensor logical_and(Operand a, Operand b);  // both; bool tensors, which broadcast
Tensor logical_or(Operand a, Operand b);   // one of them, or both; bool tensors, which broadcast
Tensor logical_xor(Operand a, Operand b);  // one of them, not both; bool tensors, which broadcast
Tensor logical_not(Operand x);             // true where the bool x is false
Tensor is_nan(Operand x);                  // of floats, as the two below -> bool
Tensor is_inf(Operand x);                  // infinite, of either sign
Tensor is_finite(Operand x);               // neither infinite nor NaN
// Whether an element over axes (none: all of them) is not 0 -> bool; of any type. False over
// nothing.
Tensor any(Operand x, const Ints& axes = {}, bool keep_dims = false);
// Whether no element over axes is 0 -> bool. True over nothing.
Tensor all(Operand x, const Ints& axes = {}, bool keep_dims = false);

}  // namespace aloft
