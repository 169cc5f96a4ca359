// Products of f64, for checks of gradients: plain blocked loops. Each element of C is one chain of
// additions along K, so bits depend on nothing but the operands.
#pragma once

#include "backends/cpu/matmul/matmul_call.h"

namespace aloft::cpu {

// Of a call read with Precision::Double.
std::unique_ptr<Prepared> prepare_wide(const MatmulCall& call);

}  // namespace aloft::cpu
