// Element-wise comparison with numpy broadcasting; the result is bool. A comparison with NaN is
// false, except not_equal, which is true (IEEE 754).
#pragma once

#include "graph/tensor.h"

namespace aloft {

Tensor equal(Operand a, Operand b);
Tensor not_equal(Operand a, Operand b);
Tensor less(Operand a, Operand b);
Tensor less_equal(Operand a, Operand b);
Tensor greater(Operand a, Operand b);
Tensor greater_equal(Operand a, Operand b);

}  // namespace aloft
