// The same elements in the same order under another shape; costs nothing.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct ReshapeAttrs {
  Shape shape;
  static constexpr auto fields() {
    return FieldList{field("shape", &ReshapeAttrs::shape, "shape of the result")};
  }
};

// The elements of x under another shape, of as many: UserError E0203 where it has more or fewer.
Tensor reshape(Operand x, const Shape& shape);
// Joins axes [from, to] into one; negative ones count from the back. UserError E0107 where there is
// no such axis, or from lies behind to.
Tensor flatten(Operand x, int from = 0, int to = -1);

}  // namespace aloft
