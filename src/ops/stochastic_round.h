// Rounding to bf16 at random: what optimizers whose formulas are of tensors keep in bf16.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct StochasticRoundAttrs {
  std::int64_t key = 0;
  std::int64_t slot = 0;
  static constexpr auto fields() {
    using A = StochasticRoundAttrs;
    return FieldList{field("key", &A::key, "identity of the tensor among those of one step"),
                     field("slot", &A::slot, "number of what is rounded of it in one step")};
  }
};

// x f32, rng i64[3] (frontend/random.h) -> x in bf16, each element up or down, as probable as it is
// near (scalar/stochastic_rounding.h). The key is the caller's, so that one random state gives the
// same bits wherever the call stands.
Tensor stochastic_round(Operand x, Operand rng, std::int64_t key, int slot);

}  // namespace aloft
