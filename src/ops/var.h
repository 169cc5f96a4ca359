// Variance over axes. Of no more values than `correction`: infinite, or NaN where all are equal
// or there is none.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct VarAttrs {
  Ints axes;
  bool keep_dims = false;
  double correction = 1;
  static constexpr auto fields() {
    using A = VarAttrs;
    return FieldList{
        field("axes", &A::axes, "reduced axes; empty: all; negative from the back"),
        field("keep_dims", &A::keep_dims, "reduced axes stay with length 1"),
        field("correction", &A::correction,
              "subtracted from the count: 1 for a sample's variance, 0 for a population's")};
  }
};

// The sum of squared distances from the mean over axes (none: all of them), over the count less
// `correction`: 1 for a sample's variance, 0 for a population's.
Tensor var(Operand x, const Ints& axes = {}, bool keep_dims = false, double correction = 1);

}  // namespace aloft
