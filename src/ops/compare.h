// Element-wise comparison with numpy broadcasting; the result is bool. A comparison with NaN is
// false, except not_equal, which is true (IEEE 754).
#pragma once

#include "ops/binary.h"

namespace aloft {

Tensor equal(Operand a, Operand b);
Tensor not_equal(Operand a, Operand b);
Tensor less(Operand a, Operand b);
Tensor less_equal(Operand a, Operand b);
Tensor greater(Operand a, Operand b);
Tensor greater_equal(Operand a, Operand b);

// With a number of the program, which becomes one of a's type where its kind allows.
inline Tensor equal(Operand a, Number auto b) { return equal(a, number_beside(a.tensor, b)); }
inline Tensor not_equal(Operand a, Number auto b) {
  return not_equal(a, number_beside(a.tensor, b));
}
inline Tensor less(Operand a, Number auto b) { return less(a, number_beside(a.tensor, b)); }
inline Tensor less_equal(Operand a, Number auto b) {
  return less_equal(a, number_beside(a.tensor, b));
}
inline Tensor greater(Operand a, Number auto b) { return greater(a, number_beside(a.tensor, b)); }
inline Tensor greater_equal(Operand a, Number auto b) {
  return greater_equal(a, number_beside(a.tensor, b));
}

}  // namespace aloft
