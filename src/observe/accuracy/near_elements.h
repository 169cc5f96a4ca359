// How large the elements of a tensor are around each of them: rows, channels or parts of one that
// holds several things may be of other sizes than the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace aloft::accuracy {

class NearElements {
 public:
  // `values` of that shape, what is not finite left out. Of another shape, or none, all elements
  // are near to each.
  NearElements(std::span<const double> values, std::span<const std::int64_t> shape);

  // The root mean square of the elements that have an index in common with element `i`, on the axis
  // on which it is least. Axes that leave fewer than 8 elements say nothing.
  double size_at(std::size_t i) const;

 private:
  struct Axis {
    std::size_t stride = 1, extent = 1;
    std::vector<double> sizes;  // by index
  };
  double all_ = 0;
  std::vector<Axis> axes_;
};

}  // namespace aloft::accuracy
