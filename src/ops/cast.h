// Conversion between element types, rounding to nearest even; the gradient is cast back.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct CastAttrs {
  DType to = DType::F32;
  static constexpr auto fields() {
    return FieldList{field("to", &CastAttrs::to, "element type of the result")};
  }
};

// x in another element type; x itself where it already has it. Within a model that has a precision
// policy, a cast to f32 asks for more: what follows stays f32 until a product (docs/precision.md).
Tensor cast(Operand x, DType to);

}  // namespace aloft
