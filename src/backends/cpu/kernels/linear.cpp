// linear: x weight^T + bias on the grid of tiles, the bias added before the one rounding.
#include "backends/cpu/matmul_call.h"

namespace aloft::cpu {

std::vector<Kernel> linear_kernels() {
  return {{.name = "cpu.linear",
           .op = "linear",
           .accepts = [](const CallSpec& call) { return read_linear(call, nullptr); },
           .prepare =
               [](const CallSpec& call) {
                 MatmulCall product;
                 read_linear(call, &product);
                 return prepare_product(product);
               }}};
}

}  // namespace aloft::cpu
