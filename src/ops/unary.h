// Element-wise functions of one tensor: one table row each in unary.cpp. neg, abs, sign and square
// take integers too and wrap around; the others take floats.
#pragma once

#include "graph/tensor.h"

namespace aloft {

Tensor neg(Operand x);         // -x
Tensor abs(Operand x);         // |x|; its gradient at 0 is 0
Tensor sign(Operand x);        // -1, 0 or 1; NaN stays NaN
Tensor square(Operand x);      // x * x
Tensor sqrt(Operand x);        // square root
Tensor rsqrt(Operand x);       // 1 / sqrt(x)
Tensor reciprocal(Operand x);  // 1 / x
Tensor exp(Operand x);         // e to the x
Tensor expm1(Operand x);       // exp(x) - 1, exact near 0
Tensor log(Operand x);         // natural logarithm
Tensor log1p(Operand x);       // log(1 + x), exact near 0
Tensor sin(Operand x);         // of radians
Tensor cos(Operand x);         // of radians
Tensor tan(Operand x);         // of radians
Tensor asin(Operand x);        // arc sine, in radians
Tensor acos(Operand x);        // arc cosine, in radians
Tensor atan(Operand x);        // arc tangent, in radians
Tensor sinh(Operand x);        // hyperbolic sine
Tensor cosh(Operand x);        // hyperbolic cosine
Tensor tanh(Operand x);        // hyperbolic tangent
Tensor erf(Operand x);         // error function
Tensor floor(Operand x);       // largest integer not above x
Tensor ceil(Operand x);        // smallest integer not below x
Tensor round(Operand x);       // nearest integer, halves to even

Tensor operator-(Operand x);  // neg(x)

}  // namespace aloft
