// Sums, products and extrema of integers over any set of axes: in 64 bits, cut to the result's
// width, so that they wrap around. Exact, hence in any order.
#pragma once

#include <memory>

#include "runtime/kernel.h"

namespace aloft::cpu {

// into[i] = combine(into[i], x[i])
using IntegerFold = void (*)(std::int64_t* into, const std::int64_t* x, std::int64_t n);

// `axes` as in ReduceAttrs: empty means all. `start`: of an empty reduction, cut to the width too.
std::unique_ptr<Prepared> prepare_integer_reduction(const CallSpec& call, const Ints& axes,
                                                    IntegerFold fold, std::int64_t start);

}  // namespace aloft::cpu
