// Conversion between element types, rounding to nearest even; the gradient is cast back.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct CastAttrs {
  DType to = DType::F32;
  static constexpr auto fields() {
    return std::tuple{field("to", &CastAttrs::to, "element type of the result")};
  }
};

Tensor cast(Operand x, DType to);  // x itself where it already has the type

}  // namespace aloft
