// linear: x weight^T + bias, the bias added before the one rounding. Few rows read the weight where
// it lies, the rest runs on the grid of tiles.
#include "backends/cpu/matmul/product_kernels.h"

namespace aloft::cpu {

std::vector<Kernel> linear_kernels() {
  return ProductKernels<read_linear>::list(
      "linear", {"cpu.linear.few_rows", "cpu.linear.split", "cpu.linear", "cpu.linear.f64"});
}

}  // namespace aloft::cpu
