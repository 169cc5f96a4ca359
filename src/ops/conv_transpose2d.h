// Two-dimensional transposed convolution: a layer that computes what conv2d's gradient for its
// input does, and so makes images larger where that one makes them smaller.
#pragma once

#include "ops/declared.h"

namespace aloft {

// Options of conv_transpose2d(); PyTorch's arguments of these names.
struct ConvTranspose2dAttrs {
  Ints stride = {1, 1};
  Ints padding = {0, 0};
  Ints output_padding = {0, 0};
  Ints dilation = {1, 1};
  std::int64_t groups = 1;
  static constexpr auto fields() {
    using A = ConvTranspose2dAttrs;
    return FieldList{
        field("stride", &A::stride, "step of the window in the result: down, right"),
        field("padding", &A::padding, "cut off on each side: above and below, left and right"),
        field("output_padding", &A::output_padding, "more of the result: below, at the right"),
        field("dilation", &A::dilation, "distance of the kernel's elements: down, right"),
        field("groups", &A::groups, "channels are split into that many independent groups")};
  }
};

// x [N, C, H, W], weight [C, O / groups, KH, KW], bias [O] or undefined -> [N, O, H', W'] with
// H' = (H - 1) stride - 2 padding + dilation (KH - 1) + output_padding + 1. `output_padding` says
// which of the sizes is meant that a conv2d would bring to H: it is less than stride or dilation.
Tensor conv_transpose2d(Operand x, Operand weight, const Tensor& bias,
                        const ConvTranspose2dAttrs& attrs = {});

}  // namespace aloft
