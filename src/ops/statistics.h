// What somebody who looks at a tensor wants to know without keeping it: its range, mean and norm,
// and how many of its elements are lost to the type that they are in.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct StatisticsAttrs {
  bool exponents = false;
  static constexpr auto fields() {
    return FieldList{field("exponents", &StatisticsAttrs::exponents,
                           "count the elements of each exponent, too")};
  }
};

// f64[11], the numbers of TensorStatistics (types/statistics.h) of all elements of x (float); with
// `exponents` f64[267], the counts of exponents behind them.
Tensor statistics(Operand x, bool exponents = false);

}  // namespace aloft
