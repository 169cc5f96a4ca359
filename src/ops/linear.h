// Affine map over the last axis, with the weight laid out as PyTorch's [out, in].
#pragma once

#include "graph/tensor.h"

namespace aloft {

// x [..., K], weight [N, K], bias [N] or undefined -> [..., N]: x weight^T + bias.
Tensor linear(Operand x, Operand weight, const Tensor& bias = {});

}  // namespace aloft
