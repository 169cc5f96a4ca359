// <kind>_update and <kind>_sums of every optimizer: unscale, clip, states, update and low-precision
// copy in one sweep over all tensors. The build makes each kind's kernels from the header with its
// formula (update/formula.cpp.in).
#include <iterator>

#include "runtime/kernel.h"

namespace aloft::cpu {

#define OPTIMIZER(stem, Options) std::vector<Kernel> stem##_kernels();
#include "optim/catalog.inc"
#undef OPTIMIZER

std::vector<Kernel> update_kernels() {
  std::vector<Kernel> all;
  for (const auto kernels : {
#define OPTIMIZER(stem, Options) stem##_kernels,
#include "optim/catalog.inc"
#undef OPTIMIZER
       }) {
    std::vector<Kernel> own = kernels();
    std::move(own.begin(), own.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace aloft::cpu
