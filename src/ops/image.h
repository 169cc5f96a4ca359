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

// Operand i has four dimensions, all but the batch constants.
inline void check_image(int i, const Infer& c) {
  c.need_float(i);
  c.need_rank(i, 4, 4);
  for (int d = 1; d < 4; ++d)
    c.check(c.shape(i)[d].is_constant(), "a dimension but the batch is symbolic",
            "constant channels, height and width");
}

}  // namespace aloft
