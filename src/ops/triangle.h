// The triangles of the last two axes.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct TriangleAttrs {
  std::int64_t diagonal = 0;
  static constexpr auto fields() {
    return FieldList{field("diagonal", &TriangleAttrs::diagonal,
                           "the last kept (tril) or first kept (triu): 0 the main one, above it "
                           "positive")};
  }
};

// x where column <= row + diagonal, 0 elsewhere. The last two axes are not symbolic.
Tensor tril(Operand x, std::int64_t diagonal = 0);
// x where column >= row + diagonal.
Tensor triu(Operand x, std::int64_t diagonal = 0);

}  // namespace aloft
