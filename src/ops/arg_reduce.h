// Where the largest and the smallest element lie.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct ArgReduceAttrs {
  std::int64_t axis = -1;
  bool keep_dims = false;
  static constexpr auto fields() {
    using A = ArgReduceAttrs;
    return FieldList{field("axis", &A::axis, "searched axis; negative from the back"),
                     field("keep_dims", &A::keep_dims, "the axis stays with length 1")};
  }
};

// Index along axis, i32, of the first of equals; NaN counts as the extremum. The axis has elements.
Tensor argmax(Operand x, std::int64_t axis = -1, bool keep_dims = false);
Tensor argmin(Operand x, std::int64_t axis = -1, bool keep_dims = false);

}  // namespace aloft
