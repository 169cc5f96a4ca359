// Two-dimensional max and average pooling with their gradients.
#pragma once

#include <algorithm>

#include "ops/declared.h"

namespace aloft {

// Options of max_pool2d().
struct MaxPool2dAttrs {
  Ints kernel = {2, 2};
  Ints stride;
  Ints padding = {0, 0};
  static constexpr auto fields() {
    using A = MaxPool2dAttrs;
    return FieldList{
        field("kernel", &A::kernel, "height and width of the window"),
        field("stride", &A::stride, "step of the window: down, right; empty: the kernel"),
        field("padding", &A::padding, "-inf on each side; at most half the kernel")};
  }
};

// Options of avg_pool2d().
struct AvgPool2dAttrs {
  Ints kernel = {2, 2};
  Ints stride;
  Ints padding = {0, 0};
  bool count_include_pad = true;
  static constexpr auto fields() {
    using A = AvgPool2dAttrs;
    return FieldList{
        field("kernel", &A::kernel, "height and width of the window"),
        field("stride", &A::stride, "step of the window: down, right; empty: the kernel"),
        field("padding", &A::padding, "zeros on each side; at most half the kernel"),
        field("count_include_pad", &A::count_include_pad, "the mean counts the padding")};
  }
};

struct AvgPool2dGradAttrs {
  Ints kernel = {2, 2};
  Ints stride;
  Ints padding = {0, 0};
  bool count_include_pad = true;
  Ints extents;
  static constexpr auto fields() {
    using A = AvgPool2dGradAttrs;
    return FieldList{field("kernel", &A::kernel, "the pooling's"),
                     field("stride", &A::stride, "the pooling's"),
                     field("padding", &A::padding, "the pooling's"),
                     field("count_include_pad", &A::count_include_pad, "the pooling's"),
                     field("extents", &A::extents, "height and width of x")};
  }
  AvgPool2dAttrs forward() const { return {kernel, stride, padding, count_include_pad}; }
};

// Inside: one pooling axis, output i covers input [i stride - padding, + kernel), where it is
// inside.
struct Windows {
  std::int64_t kernel, stride, padding;
  std::int64_t count(std::int64_t size) const {
    const std::int64_t room = size - (kernel - 2 * padding);  // padding is at most half the kernel
    return room < 0 ? 0 : room / stride + 1;
  }
  std::int64_t first(std::int64_t i) const {
    return std::max<std::int64_t>(0, i * stride - padding);
  }
  std::int64_t last(std::int64_t i, std::int64_t size) const {
    return std::min(size, i * stride - padding + kernel);
  }
  // Elements that a mean over window i divides by.
  std::int64_t divisor(std::int64_t i, std::int64_t size, bool count_padding) const {
    return count_padding ? kernel : last(i, size) - first(i);
  }
};

// Inside: both axes of a pooling.
struct Window2d {
  Windows down, right;
};
// Inside: those of a pooling's attributes.
template <class A>
Window2d windows_of(const A& a) {
  const Ints& stride = a.stride.empty() ? a.kernel : a.stride;
  return {{a.kernel[0], stride[0], a.padding[0]}, {a.kernel[1], stride[1], a.padding[1]}};
}

// The maximum over each window: x [N, C, H, W] -> [N, C, H', W'] with H' = (H + 2 padding - kernel)
// / stride + 1, rounded down. The maximum is NaN where the window has a NaN; the first of equal
// maxima has the gradient.
Tensor max_pool2d(Operand x, const MaxPool2dAttrs& attrs);
// The mean over each window, of the same shape.
Tensor avg_pool2d(Operand x, const AvgPool2dAttrs& attrs);

}  // namespace aloft
