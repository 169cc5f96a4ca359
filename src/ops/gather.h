// Reading and adding at integer indices along an axis. An index outside the axis reads NaN (0 in an
// integer tensor) and adds nothing: a bad index shows, and never touches other memory.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct GatherAttrs {
  std::int64_t axis = 0;
  static constexpr auto fields() {
    return FieldList{field("axis", &GatherAttrs::axis, "indexed axis; negative from the back")};
  }
};

// out[i, j, k] = x[i, ids[i, j, k], k]: ids has x's shape but for the axis (here 1).
Tensor gather(Operand x, Operand ids, std::int64_t axis);
// into, with updates[i, j, k] added at [i, ids[i, j, k], k]; updates has ids' shape. In the order
// of j; 16-bit types add in f32 and round once.
Tensor scatter_add(Operand into, Operand ids, Operand updates, std::int64_t axis);
// out[i, j, k] = x[i, ids[j], k]: ids of any rank; its dimensions take the axis' place.
Tensor take(Operand x, Operand ids, std::int64_t axis);
// into, with updates[i, j, k] added at [i, ids[j], k]; ids has rank 1.
Tensor index_add(Operand into, Operand ids, Operand updates, std::int64_t axis);

}  // namespace aloft
