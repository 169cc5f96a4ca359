// What the numbers of the op `statistics` mean, in double.
#pragma once

#include "ops/host_array.h"
#include "types/statistics.h"

namespace aloft {

// Of all elements; `underflowed` and `saturated` by x.dtype.
TensorStatistics statistics_in_double(const HostArray& x);

}  // namespace aloft
