// Running sums.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct CumsumAttrs {
  std::int64_t axis = -1;
  bool reverse = false;
  static constexpr auto fields() {
    using A = CumsumAttrs;
    return FieldList{field("axis", &A::axis, "summed axis; negative from the back"),
                     field("reverse", &A::reverse, "from the back to the front")};
  }
};

// Element k: the sum of elements 0 .. k along axis.
Tensor cumsum(Operand x, std::int64_t axis = -1, bool reverse = false);

}  // namespace aloft
