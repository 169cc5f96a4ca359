// What a kernel is asked to do, before any memory exists: op, attributes, types. The graph's node,
// the Plan's instruction and the eager call all reduce to this.
#pragma once

#include <cstdint>
#include <vector>

#include "base/name.h"
#include "types/attrs.h"
#include "types/shape.h"

namespace aloft {

struct CallSpec {
  Name op;
  Attrs attrs;
  std::vector<TensorType> in, out;
  int threads = 1;  // sizes per-thread scratch; never changes a result

  // Every symbol that appears in `in` or `out`, in order of first appearance.
  std::vector<Name> symbols() const;
};

}  // namespace aloft
