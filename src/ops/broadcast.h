// Repeating along axes, and asking for extents that are only known when the program runs.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct BroadcastAttrs {
  Shape shape;
  static constexpr auto fields() {
    return FieldList{field("shape", &BroadcastAttrs::shape, "shape of the result")};
  }
};

struct ElementCountAttrs {
  Ints axes;
  DType dtype = DType::F32;
  static constexpr auto fields() {
    using A = ElementCountAttrs;
    return FieldList{field("axes", &A::axes, "axes whose extents are multiplied; empty: all"),
                     field("dtype", &A::dtype, "element type of the result")};
  }
};

// x repeated to a shape, as numpy's broadcast_to.
Tensor broadcast_to(Operand x, const Shape& shape);
Tensor broadcast_like(Operand x, const Tensor& like);  // to the shape that `like` has
// The product of the actual extents of x along axes, as a scalar: differs from a constant where a
// dimension is symbolic (the mean over a partial batch).
Tensor element_count(Operand x, const Ints& axes, DType dtype);

}  // namespace aloft
