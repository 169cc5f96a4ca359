// The element type in which an op keeps what it reduces out of x (means, log-sum-exps, losses).
#pragma once

#include "types/dtype.h"

namespace aloft {

constexpr DType statistics_type(DType x) { return x == DType::F64 ? DType::F64 : DType::F32; }

}  // namespace aloft
