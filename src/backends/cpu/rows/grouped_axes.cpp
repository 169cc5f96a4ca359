#include "backends/cpu/rows/grouped_axes.h"

namespace aloft::cpu {

GroupedAxes::GroupedAxes(const Shape& shape, const std::vector<bool>& marked,
                         const CallSpec& call) {
  Dim first = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == Dim(1)) continue;
    if (!groups_.empty() && groups_.back().marked == marked[axis]) {
      groups_.back().extent *= shape[axis].max();
      if (groups_.size() == 1) first = first * shape[axis];
    } else {
      groups_.push_back({marked[axis], shape[axis].max(), 1});
      if (groups_.size() == 1) first = shape[axis];
    }
  }
  if (groups_.empty()) groups_.push_back({false, 1, 1});
  first_ = extent_of(first, call);
  for (int g = count() - 2; g >= 0; --g)
    groups_[g].stride = groups_[g + 1].stride * groups_[g + 1].extent;
}

std::vector<bool> named_axes(const Ints& axes, int rank) {
  std::vector<bool> named(rank, axes.empty());
  for (std::int64_t axis : axes) named[normal_axis(axis, rank)] = true;
  return named;
}

}  // namespace aloft::cpu
