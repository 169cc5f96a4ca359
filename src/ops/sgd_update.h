// Stochastic gradient descent, momentum and Nesterov momentum for a list of tensors at once.
#pragma once

#include "ops/declared.h"
#include "ops/update_layout.h"

namespace aloft {

struct UpdateOperands;  // ops/update_ops.h
struct UpdateResults;

struct SgdUpdateAttrs {
  std::int64_t count = 0;
  bool has_master = false;
  Ints decay;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool split_master = false;
  static constexpr auto fields() {
    using A = SgdUpdateAttrs;
    return std::tuple{
        field("count", &A::count, "number of parameters"),
        field("has_master", &A::has_master, "fp32 masters follow the gradients"),
        field("decay", &A::decay, "1 for each parameter that decays, else 0"),
        field("momentum", &A::momentum, "0: no moment operands"),
        field("dampening", &A::dampening, "of the gradient into the momentum"),
        field("nesterov", &A::nesterov, "look ahead along the momentum"),
        field("weight_decay", &A::weight_decay, "added to the gradient (L2)"),
        field("split_master", &A::split_master, "masters are remainders of their bf16 parameters")};
  }
  UpdateLayout layout() const {
    return {UpdateLayout::count_of(count), has_master, momentum != 0 ? 1 : 0, split_master};
  }
};

// `attrs.count`, `has_master` and `split_master` are taken from the operands.
UpdateResults sgd_update(const UpdateOperands& operands, SgdUpdateAttrs attrs);

}  // namespace aloft
