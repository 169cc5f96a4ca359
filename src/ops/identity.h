// Copies: `identity` passes gradients, `detach` stops them.
#pragma once

#include "graph/tensor.h"

namespace aloft {

// A copy, of which gradients are taken as of x.
Tensor identity(Operand x);
// The same values, of which no gradient is taken.
Tensor detach(Operand x);

}  // namespace aloft
