// Sorting along an axis; equals keep their order, NaN counts as the largest.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct SortAttrs {
  std::int64_t axis = -1;
  bool descending = false;
  static constexpr auto fields() {
    using A = SortAttrs;
    return FieldList{field("axis", &A::axis, "sorted axis; negative from the back"),
                     field("descending", &A::descending, "largest first")};
  }
};

struct TopKAttrs {
  std::int64_t k = 1;
  std::int64_t axis = -1;
  bool largest = true;
  static constexpr auto fields() {
    using A = TopKAttrs;
    return FieldList{field("k", &A::k, "how many"),
                     field("axis", &A::axis, "searched axis; negative from the back"),
                     field("largest", &A::largest, "the largest, or the smallest")};
  }
};

// Ascending: {values, indices}. Indices are i32 and tell where each value was.
std::vector<Tensor> sort(Operand x, std::int64_t axis = -1, bool descending = false);
Tensor argsort(Operand x, std::int64_t axis = -1, bool descending = false);  // the indices alone
// The first k of sort(x, axis, largest): {values, indices}. The axis is not symbolic.
std::vector<Tensor> top_k(Operand x, std::int64_t k, std::int64_t axis = -1, bool largest = true);

}  // namespace aloft
