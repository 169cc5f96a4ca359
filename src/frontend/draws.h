// Random draws of a compiled program. A draw's numbers follow from the random state and a key, the
// hash of module path, op and how often that place has drawn since the state last changed. Eager
// calls count on, while a program has the keys of its trace. So that its calls count as eager ones
// do, each draw takes a random state of its own, an input that the host fills: this thread's
// state, with the seed that gives under the trace's key what the call's own key would give.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "graph/scope.h"

namespace aloft {

// One draw of a traced function.
struct Draw {
  Where where;
  Name op;
  int occurrence = 0;    // at that place in the program, since its last update of the random state
  std::int64_t key = 0;  // as traced
  bool behind_update = false;  // the program has updated the random state before it,
  bool before_update = false;  // or does so later
  std::string input = {};      // where it takes its state; empty: it reads another
};

// Draws by path and op since the random state last changed.
using DrawCounts = std::map<std::pair<Name, Name>, int>;

// The random state under which `draw` gives the numbers of an eager draw at its
// place that comes behind `before` others and those of the program.
std::array<std::int64_t, 3> draw_state(const Draw& draw, int before);

}  // namespace aloft
