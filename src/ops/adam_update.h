// Adam and AdamW for a list of tensors at once.
#pragma once

#include "ops/declared.h"
#include "ops/update_layout.h"

namespace aloft {

struct UpdateOperands;  // ops/update_ops.h
struct UpdateResults;

struct AdamUpdateAttrs {
  std::int64_t count = 0;
  bool has_master = false;
  Ints decay;
  bool decoupled = true;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool split_master = false;
  static constexpr auto fields() {
    using A = AdamUpdateAttrs;
    return std::tuple{
        field("count", &A::count, "number of parameters"),
        field("has_master", &A::has_master, "fp32 masters follow the gradients"),
        field("decay", &A::decay, "1 for each parameter that decays, else 0"),
        field("decoupled", &A::decoupled, "AdamW: decay shrinks the weight; else L2 (Adam)"),
        field("beta1", &A::beta1, "decay of the first moment"),
        field("beta2", &A::beta2, "decay of the second moment"),
        field("eps", &A::eps, "added to the root of the second moment"),
        field("weight_decay", &A::weight_decay, "0: none"),
        field("split_master", &A::split_master, "masters are remainders of their bf16 parameters")};
  }
  UpdateLayout layout() const {
    return {UpdateLayout::count_of(count), has_master, 2, split_master};
  }
};

// `attrs.count`, `has_master` and `split_master` are taken from the operands; moments[0] is m, [1]
// is v.
UpdateResults adam_update(const UpdateOperands& operands, AdamUpdateAttrs attrs);

}  // namespace aloft
