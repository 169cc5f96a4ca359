// Class numbers as rows of zeros with a single one.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct OneHotAttrs {
  std::int64_t classes = 1;
  DType dtype = DType::F32;
  static constexpr auto fields() {
    using A = OneHotAttrs;
    return FieldList{field("classes", &A::classes, "length of the new last axis"),
                     field("dtype", &A::dtype, "element type of the result")};
  }
};

// ids [...] -> [..., classes]; an id outside [0, classes) gives zeros.
Tensor one_hot(Operand ids, std::int64_t classes, DType dtype = DType::F32);

}  // namespace aloft
