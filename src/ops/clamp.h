// Bounds on every element.
#pragma once

#include <limits>

#include "ops/declared.h"

namespace aloft {

struct ClampAttrs {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  static constexpr auto fields() {
    using A = ClampAttrs;
    return FieldList{field("low", &A::low, "smallest result"),
                     field("high", &A::high, "largest result")};
  }
};

// low where x is below it, high where x is above it; NaN stays. low <= high. What an integer type
// does not reach becomes its own nearest bound.
Tensor clamp(Operand x, double low, double high);

}  // namespace aloft
