// A dense array's axes, joined into groups that a kernel treats alike: reduced or kept. Only the
// first group may hold a symbolic extent.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/kernel.h"

namespace aloft::cpu {

class GroupedAxes {
 public:
  // `marked[axis]` tells the two kinds apart. Neighbours of one kind join; axes of length 1
  // disappear. There is always at least one group.
  GroupedAxes(const Shape& shape, const std::vector<bool>& marked, const CallSpec& call);

  int count() const { return static_cast<int>(groups_.size()); }
  bool is_marked(int g) const { return groups_[g].marked; }
  // The extents for one run.
  std::int64_t extent(int g, std::span<const std::int64_t> symbols) const {
    return g == 0 ? first_.at(symbols) : groups_[g].extent;
  }
  std::int64_t bound(int g) const { return groups_[g].extent; }
  std::int64_t stride(int g) const { return groups_[g].stride; }

 private:
  struct Group {
    bool marked;
    std::int64_t extent, stride;
  };
  std::vector<Group> groups_;
  Extent first_;
};

// Which axes of a shape a list names; an empty list names all.
std::vector<bool> named_axes(const Ints& axes, int rank);

}  // namespace aloft::cpu
