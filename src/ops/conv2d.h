// Two-dimensional convolution (cross-correlation, as in every framework) and its gradients.
#pragma once

#include "ops/declared.h"

namespace aloft {

// Options of conv2d(); PyTorch's arguments of these names.
struct Conv2dAttrs {
  Ints stride = {1, 1};
  Ints padding = {0, 0};
  Ints dilation = {1, 1};
  std::int64_t groups = 1;
  static constexpr auto fields() {
    using A = Conv2dAttrs;
    return FieldList{
        field("stride", &A::stride, "step of the window: down, right"),
        field("padding", &A::padding, "zeros on each side: above and below, left and right"),
        field("dilation", &A::dilation, "distance of the kernel's elements: down, right"),
        field("groups", &A::groups, "channels are split into that many independent groups")};
  }
};

// Inside: the gradients also need the extents of what they make.
struct Conv2dGradAttrs {
  Ints stride = {1, 1};
  Ints padding = {0, 0};
  Ints dilation = {1, 1};
  std::int64_t groups = 1;
  Ints extents;
  static constexpr auto fields() {
    using A = Conv2dGradAttrs;
    return FieldList{field("stride", &A::stride, "the convolution's"),
                     field("padding", &A::padding, "the convolution's"),
                     field("dilation", &A::dilation, "the convolution's"),
                     field("groups", &A::groups, "the convolution's"),
                     field("extents", &A::extents, "height and width: of x, or of the kernel")};
  }
  Conv2dAttrs forward() const { return {stride, padding, dilation, groups}; }
};

// x [N, C, H, W], weight [O, C / groups, KH, KW], bias [O] or undefined -> [N, O, H', W'] with
// H' = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1, rounded down.
Tensor conv2d(Operand x, Operand weight, const Tensor& bias, const Conv2dAttrs& attrs = {});
// Inside: dx [N, C, H, W] from dy and the weight; dweight from x and dy.
Tensor conv2d_grad_input(Operand dy, Operand weight, const Conv2dGradAttrs& attrs);
Tensor conv2d_grad_weight(Operand x, Operand dy, const Conv2dGradAttrs& attrs);

}  // namespace aloft
