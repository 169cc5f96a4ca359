// Checks of ops that move a window over an image [N, C, H, W]: convolution and pooling.
#pragma once

#include <algorithm>
#include <string>

#include "ops/extents.h"
#include "ops/infer.h"
#include "types/attrs.h"

namespace aloft {

// Most elements of one direction, padding included: libraries count them in 32 bits.
inline constexpr std::int64_t kMostPixels = 0x7fffffff;

// An attribute with a number for each direction of the window.
inline void check_pair(const Ints& values, std::int64_t least, std::string_view name,
                       const Infer& c) {
  c.check(values.size() == 2 && values[0] >= least && values[1] >= least,
          std::string(name) + " = " + print_attr(values),
          "two numbers (down, right) of at least " + std::to_string(least));
}

// The extents that a gradient's result is to have.
inline void check_extents(const Ints& extents, std::int64_t least, const Infer& c) {
  check_pair(extents, least, "extents", c);
  c.check(std::max(extents[0], extents[1]) <= kMostPixels, "extents = " + print_attr(extents),
          "two numbers below 2^31");
}

// Whether a padded image and a dilated kernel have sizes at all; UserError E0103 where not even
// 63 bits hold them.
inline void check_window(std::int64_t kernel, std::int64_t size, std::int64_t padding,
                         std::int64_t dilation, const Infer& c) {
  const std::int64_t padded = extent_sum(size, extent_product(2, padding));
  const std::int64_t dilated = extent_product(dilation, std::max<std::int64_t>(1, kernel));
  extent_sum(padded, dilated);
  c.check(
      std::max(padded, dilated) <= kMostPixels,
      "a window of " + std::to_string(dilated) + " over " + std::to_string(padded) + " elements",
      "padded images and dilated kernels of less than 2^31 in each direction");
}

// Output extent of a window of `kernel` elements over `size`; at most 0 where it does not
// fit.
constexpr std::int64_t window_count(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                    std::int64_t padding, std::int64_t dilation) {
  const std::int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

// How many places a dilated kernel has in one direction of an image: at least one.
inline std::int64_t check_places(const Dim& kernel, const Dim& size, std::int64_t stride,
                                 std::int64_t padding, std::int64_t dilation, const Infer& c) {
  check_window(kernel.max(), size.max(), padding, dilation, c);
  const std::int64_t n = window_count(size.max(), kernel.max(), stride, padding, dilation);
  c.check(kernel.max() > 0 && n > 0,
          "a kernel of " + kernel.str() + " does not fit into " + size.str(),
          "an input at least as large as the dilated kernel", "more padding");
  return n;
}

// The channels of a convolution: x's `in`, and a weight [out, in / groups, ...].
inline void check_channels(std::int64_t groups, const Dim& in, const Shape& weight,
                           std::string_view form, const Infer& c) {
  c.check(in.max() % groups == 0 && weight[0].max() % groups == 0,
          std::to_string(groups) + " groups do not divide " + in.str() + " and " + weight[0].str() +
              " channels",
          "a number of groups that divides both channel counts");
  c.check(extent_product(weight[1].max(), groups) == in.max(),
          "the weight takes " + weight[1].str() + " channels a group, x has " +
              std::to_string(in.max() / groups),
          "a weight [out, in / groups, " + std::string(form) + "]");
}

// Operand i has four dimensions, all but the batch constants.
inline void check_image(int i, const Infer& c) {
  c.need_float(i);
  c.need_rank(i, 4, 4);
  for (int d = 1; d < 4; ++d)
    c.check(c.shape(i)[d].is_constant(), "a dimension but the batch is symbolic",
            "constant channels, height and width");
}

// Operands 0 and 1, of all that there are at most, are images of one type.
inline void check_two_images(const Infer& c, int most = 2) {
  c.need_count(2, most);
  check_image(0, c);
  check_image(1, c);
  c.need_same_dtype(0, 1);
}

}  // namespace aloft
