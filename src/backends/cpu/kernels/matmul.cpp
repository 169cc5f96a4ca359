// matmul on the grid of tiles.
#include "backends/cpu/matmul_call.h"

namespace aloft::cpu {

std::vector<Kernel> matmul_kernels() {
  return {{.name = "cpu.matmul",
           .op = "matmul",
           .accepts = [](const CallSpec& call) { return read_matmul(call, nullptr); },
           .prepare =
               [](const CallSpec& call) {
                 MatmulCall product;
                 read_matmul(call, &product);
                 return prepare_product(product);
               }}};
}

}  // namespace aloft::cpu
