// Joining tensors along an axis, and taking them apart.
#pragma once

#include "base/source_location.h"
#include "ops/declared.h"

namespace aloft {

struct ConcatAttrs {
  std::int64_t axis = 0;
  static constexpr auto fields() {
    return FieldList{field("axis", &ConcatAttrs::axis, "joined axis; negative from the back")};
  }
};

struct SplitAttrs {
  std::int64_t axis = 0;
  Ints sizes;
  static constexpr auto fields() {
    using A = SplitAttrs;
    return FieldList{field("axis", &A::axis, "cut axis; negative from the back"),
                     field("sizes", &A::sizes, "lengths of the parts; they add up to the axis")};
  }
};

// Joins along an axis, which is not symbolic: shapes are equal but for it, and types meet
// (docs/number-types.md). At least one tensor. `at`: where it is called.
Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis = 0,
              SourceLocation at = SourceLocation::current());
// Joins along a new axis: equal shapes, types meet. `at` as above.
Tensor stack(const std::vector<Tensor>& parts, std::int64_t axis = 0,
             SourceLocation at = SourceLocation::current());
// Parts of these lengths along the axis; they add up to it.
std::vector<Tensor> split(Operand x, const Ints& sizes, std::int64_t axis = 0);

}  // namespace aloft
