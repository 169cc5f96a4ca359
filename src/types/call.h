// What a kernel is asked to do, before any memory exists: op, attributes, types. The graph's node,
// the Plan's instruction and the eager call all reduce to this.
#pragma once

#include <cstdint>
#include <vector>

#include "base/name.h"
#include "types/attrs.h"
#include "types/product_form.h"
#include "types/shape.h"

namespace aloft {

// An op with what it is asked for beside its operands. The attributes are the caller's, who keeps
// them meanwhile.
struct OpCall {
  Name op;
  const Attrs& attrs;
  ProductForm form = ProductForm::Plain;  // how the products in it may be computed
};

struct CallSpec {
  Name op;
  Attrs attrs;
  std::vector<TensorType> in, out;
  int threads = 1;                        // sizes per-thread scratch; never changes a result
  ProductForm form = ProductForm::Plain;  // how the products in it may be computed

  // Every symbol that appears in `in` or `out`, in order of first appearance.
  std::vector<Name> symbols() const;
};

}  // namespace aloft
