// Activation functions and their gradient ops: one table row each in activation.cpp. NAME_grad
// takes (dy, x) and gives the cotangent of x.
#pragma once

#include "ops/declared.h"

namespace aloft {

// Of elu (what -x tends to) and leaky_relu (the slope below 0).
struct ActivationAttrs {
  double alpha = 1;
  static constexpr auto fields() {
    return std::tuple{field("alpha", &ActivationAttrs::alpha, "scale of the negative side")};
  }
};

Tensor relu(Operand x);
Tensor relu6(Operand x);
Tensor gelu(Operand x);       // x times the normal distribution function
Tensor gelu_tanh(Operand x);  // GPT-2's approximation of it
Tensor silu(Operand x);
Tensor sigmoid(Operand x);
Tensor log_sigmoid(Operand x);
Tensor softplus(Operand x);
Tensor softsign(Operand x);
Tensor elu(Operand x, double alpha = 1);
Tensor selu(Operand x);
Tensor leaky_relu(Operand x, double alpha = 0.01);
Tensor hard_sigmoid(Operand x);
Tensor hard_swish(Operand x);
Tensor mish(Operand x);

}  // namespace aloft
