// Activation functions and their gradient ops: one table row each in activation.cpp. NAME_grad
// takes (dy, x) and gives the cotangent of x.
#pragma once

#include "ops/declared.h"

namespace aloft {

// Of elu (what -x tends to) and leaky_relu (the slope below 0).
struct ActivationAttrs {
  double alpha = 1;
  static constexpr auto fields() {
    return FieldList{field("alpha", &ActivationAttrs::alpha, "scale of the negative side")};
  }
};

Tensor relu(Operand x);                   // max(x, 0); its gradient at 0 is 0
Tensor relu6(Operand x);                  // min(max(x, 0), 6)
Tensor gelu(Operand x);                   // exact: x times the normal distribution function
Tensor gelu_tanh(Operand x);              // GPT-2's approximation of gelu, by a tanh
Tensor silu(Operand x);                   // x sigmoid(x)
Tensor sigmoid(Operand x);                // 1 / (1 + exp(-x))
Tensor log_sigmoid(Operand x);            // log(sigmoid(x))
Tensor softplus(Operand x);               // log(1 + exp(x))
Tensor softsign(Operand x);               // x / (1 + |x|)
Tensor elu(Operand x, double alpha = 1);  // x, below 0 alpha (exp(x) - 1)
Tensor selu(Operand x);  // elu that keeps mean 0 and deviation 1 through deep networks
Tensor leaky_relu(Operand x, double alpha = 0.01);  // x, below 0 alpha x
Tensor hard_sigmoid(Operand x);                     // relu6(x + 3) / 6
Tensor hard_swish(Operand x);                       // x relu6(x + 3) / 6
Tensor mish(Operand x);                             // x tanh(softplus(x))

}  // namespace aloft
