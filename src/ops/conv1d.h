// One-dimensional convolution: conv2d over images of height 1.
#pragma once

#include "ops/declared.h"

namespace aloft {

// Options of conv1d(); PyTorch's arguments of these names.
struct Conv1dAttrs {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  static constexpr auto fields() {
    using A = Conv1dAttrs;
    return FieldList{
        field("stride", &A::stride, "step of the window"),
        field("padding", &A::padding, "zeros at each end"),
        field("dilation", &A::dilation, "distance of the kernel's elements"),
        field("groups", &A::groups, "channels are split into that many independent groups")};
  }
};

// x [N, C, L], weight [O, C / groups, K], bias [O] or undefined -> [N, O, L'] with
// L' = (L + 2 padding - dilation (K - 1) - 1) / stride + 1, rounded down.
Tensor conv1d(Operand x, Operand weight, const Tensor& bias, const Conv1dAttrs& attrs = {});

}  // namespace aloft
