// A value around and between the elements of one axis.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct PadAttrs {
  std::int64_t axis = 0;
  std::int64_t before = 0;
  std::int64_t after = 0;
  double value = 0;
  std::int64_t between = 0;
  static constexpr auto fields() {
    using A = PadAttrs;
    return FieldList{field("axis", &A::axis, "padded axis; negative from the back"),
                     field("before", &A::before, "elements in front"),
                     field("after", &A::after, "elements behind"),
                     field("value", &A::value, "of the new elements"),
                     field("between", &A::between, "elements between two neighbours")};
  }
};

// x with `before` and `after` elements of `value` at the ends of an axis, and `between` of them
// between any two neighbours. The axis is not symbolic; no count is negative (slice cuts).
Tensor pad(Operand x, std::int64_t axis, std::int64_t before, std::int64_t after, double value = 0,
           std::int64_t between = 0);

}  // namespace aloft
