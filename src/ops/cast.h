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
// The same, but never left out: while a model is traced its values are f32, whatever a precision
// policy makes of them later. For results that are read as `to` outside the program.
Tensor result_as(Operand x, DType to);

}  // namespace aloft
