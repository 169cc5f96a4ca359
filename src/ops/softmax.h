// Softmax and its logarithm.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct SoftmaxAttrs {
  std::int64_t axis = -1;
  static constexpr auto fields() {
    return FieldList{field("axis", &SoftmaxAttrs::axis, "normalised axis; negative from the back")};
  }
};

// exp(x), divided by its sum along the axis; without overflow.
Tensor softmax(Operand x, std::int64_t axis = -1);
// x - logsumexp(x) along the axis: the logarithm of softmax, exact where that is nearly 0.
Tensor log_softmax(Operand x, std::int64_t axis = -1);

}  // namespace aloft
