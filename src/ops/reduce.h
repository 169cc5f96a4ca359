// Reductions over axes: sum, mean, max, min, prod. An empty list of axes means all of them.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct ReduceAttrs {
  Ints axes;
  bool keep_dims = false;
  static constexpr auto fields() {
    using A = ReduceAttrs;
    return std::tuple{field("axes", &A::axes, "reduced axes; empty: all; negative from the back"),
                      field("keep_dims", &A::keep_dims, "reduced axes stay with length 1")};
  }
};

Tensor sum(Operand x, const Ints& axes = {}, bool keep_dims = false);
Tensor mean(Operand x, const Ints& axes = {}, bool keep_dims = false);  // NaN over nothing
Tensor max(Operand x, const Ints& axes = {}, bool keep_dims = false);   // -inf over nothing
Tensor min(Operand x, const Ints& axes = {}, bool keep_dims = false);   // inf over nothing
Tensor prod(Operand x, const Ints& axes = {}, bool keep_dims = false);  // 1 over nothing

// The shape after reducing, for other ops' inference. `axes` normalised and sorted.
Shape reduced_shape(const Shape& shape, const std::vector<int>& axes, bool keep_dims);
// `t`, reduced over `axes`, seen again with length-1 axes so that it broadcasts against `like`.
Tensor expand_reduced(const Tensor& t, const Tensor& like, const Ints& axes);

}  // namespace aloft
