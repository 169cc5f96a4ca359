// Reductions over axes: sum, mean, max, min, prod. An empty list of axes means all of them.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct ReduceAttrs {
  Ints axes;
  bool keep_dims = false;
  static constexpr auto fields() {
    using A = ReduceAttrs;
    return FieldList{field("axes", &A::axes, "reduced axes; empty: all; negative from the back"),
                     field("keep_dims", &A::keep_dims, "reduced axes stay with length 1")};
  }
};

// The sum over axes; none: all of them. keep_dims: they stay, with length 1; else they go.
Tensor sum(Operand x, const Ints& axes = {}, bool keep_dims = false);
Tensor mean(Operand x, const Ints& axes = {},
            bool keep_dims = false);  // the mean; NaN over no element
Tensor max(Operand x, const Ints& axes = {},
           bool keep_dims = false);  // the largest; -inf over no element
Tensor min(Operand x, const Ints& axes = {},
           bool keep_dims = false);  // the smallest; inf over no element
Tensor prod(Operand x, const Ints& axes = {},
            bool keep_dims = false);  // the product; 1 over no element

// Inside: the shape after reducing, for other ops' inference. `axes` normalised and sorted.
Shape reduced_shape(const Shape& shape, const std::vector<int>& axes, bool keep_dims);
// Inside: `t`, reduced over `axes`, seen again with length-1 axes so that it broadcasts against
// `like`.
Tensor expand_reduced(const Tensor& t, const Tensor& like, const Ints& axes);

}  // namespace aloft
