// What a value was computed from, as far as a gradient goes back from it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "graph/graph.h"

namespace aloft {

// Whether a gradient passes node `n`: its op has one, or the node is a request for gradients.
bool passes_gradient(const Node& node);

class History {
 public:
  History(const Graph& graph, ValueId target);

  // Whether a gradient of the target reaches node `n` on its way back, sources included.
  bool holds(std::uint32_t n) const { return n < held_.size() && held_[n]; }
  // When the value of source `n` (a `state` or an `input`) was first used, by an op that is no
  // cast: gradients are complete in the reverse of this order. -1 where it was not.
  std::int64_t first_use(std::uint32_t n) const;

 private:
  std::vector<bool> held_;
  std::map<std::uint32_t, std::int64_t> first_use_;
};

}  // namespace aloft
