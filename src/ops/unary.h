// Element-wise functions of one tensor: one table row each in unary.cpp. neg, abs, sign and square
// take integers too and wrap around; the others take floats.
#pragma once

#include "graph/tensor.h"

namespace aloft {

Tensor neg(Operand x);
Tensor abs(Operand x);
Tensor sign(Operand x);
Tensor square(Operand x);
Tensor sqrt(Operand x);
Tensor rsqrt(Operand x);
Tensor reciprocal(Operand x);
Tensor exp(Operand x);
Tensor expm1(Operand x);
Tensor log(Operand x);
Tensor log1p(Operand x);
Tensor sin(Operand x);
Tensor cos(Operand x);
Tensor tan(Operand x);
Tensor asin(Operand x);
Tensor acos(Operand x);
Tensor atan(Operand x);
Tensor sinh(Operand x);
Tensor cosh(Operand x);
Tensor tanh(Operand x);
Tensor erf(Operand x);
Tensor floor(Operand x);
Tensor ceil(Operand x);
Tensor round(Operand x);  // halves to even

Tensor operator-(Operand x);

}  // namespace aloft
