// Dropout whose choice is a function of the random state, the op's key and the element's index.
#pragma once

#include <cmath>

#include "ops/declared.h"

namespace aloft {

struct DropoutAttrs {
  double p = 0.5;
  std::int64_t key = 0;
  static constexpr auto fields() {
    using A = DropoutAttrs;
    return FieldList{field("p", &A::p, "share of the elements that become 0, in [0, 1)"),
                     field("key", &A::key, "identity of the draw among those of one step")};
  }
  // An element is dropped where the upper 24 of its random bits are below this.
  std::uint32_t threshold() const { return static_cast<std::uint32_t>(std::lround(p * 0x1p24)); }
};

// x, rng i64[3] = {seed, step, micro-batch} (frontend/random.h) -> x / (1 - p) where kept, else 0.
// The gradient drops the same elements. What follows from `rng`: ops/random.h.
Tensor dropout(Operand x, Operand rng, double p);

}  // namespace aloft
