// What somebody who looks at a tensor wants to know without keeping it: its range, mean and norm,
// and how many of its elements are lost to the type that they are in.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct StatisticsAttrs {
  bool exponents = false;
  bool masked = false;
  static constexpr auto fields() {
    using A = StatisticsAttrs;
    return FieldList{field("exponents", &A::exponents, "count the elements of each exponent, too"),
                     field("masked", &A::masked,
                           "-inf is what a mask hides: counted, and in no max, min, mean or norm")};
  }
};

// f64[11], the numbers of TensorStatistics (types/statistics.h) of all elements of x (float); with
// `exponents` f64[267], the counts of exponents behind them. `masked`: elements that are -inf are
// counted, and else left out; where all are, max, min and mean are NaN.
Tensor statistics(Operand x, bool exponents = false, bool masked = false);

}  // namespace aloft
