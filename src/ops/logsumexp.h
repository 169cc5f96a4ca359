// The logarithm of a sum of exponentials.
#pragma once

#include "ops/reduce.h"

namespace aloft {

// log(sum(exp(x))) over axes, without overflow; -inf over nothing.
Tensor logsumexp(Operand x, const Ints& axes = {}, bool keep_dims = false);

}  // namespace aloft
