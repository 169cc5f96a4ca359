// What the numbers of the op `statistics` mean, in double.
#pragma once

#include "ops/host_array.h"
#include "types/statistics.h"

namespace aloft {

// Of all elements; `underflowed` and `saturated` by x.dtype. `masked`: as of StatisticsAttrs.
TensorStatistics statistics_in_double(const HostArray& x, bool masked = false);

}  // namespace aloft
