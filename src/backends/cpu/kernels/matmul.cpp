// matmul: few rows read B where it lies, the rest runs on the grid of tiles.
#include "backends/cpu/matmul/product_kernels.h"

namespace aloft::cpu {

std::vector<Kernel> matmul_kernels() {
  return ProductKernels<read_matmul>::list(
      "matmul", {"cpu.matmul.few_rows", "cpu.matmul.split", "cpu.matmul", "cpu.matmul.f64"});
}

}  // namespace aloft::cpu
