// The head of a language model: a projection onto the classes and the cross-entropy in one op. Of
// the logits a chunk of rows is held at a time (all rows, where they fit one chunk).
#pragma once

#include "ops/cross_entropy.h"
#include "ops/declared.h"

namespace aloft {

struct LossAndGradients;  // ops/step_tensors.h

// x [..., D], weight [V, D], integer targets [...] -> the loss, f32 []; what
// cross_entropy(matmul(x, weight^T), targets) gives.
Tensor linear_cross_entropy(Operand x, Operand weight, Operand targets,
                            const CrossEntropyAttrs& attrs = {});

// Inside: loss and gradients in one sweep, where the loss's cotangent `dloss` (f32 []) is known
// beforehand: each chunk's logits are computed once instead of twice.
LossAndGradients linear_cross_entropy_sweep(Operand x, Operand weight, Operand targets,
                                            Operand dloss, const CrossEntropyAttrs& attrs = {});

}  // namespace aloft
