// layer_norm and its gradient.
#include "ops/layer_norm.h"

#include "backends/cpu/rows/norm_kernels.h"

namespace aloft::cpu {

std::vector<Kernel> layer_norm_kernels() {
  return {{"cpu.layer_norm", "layer_norm",
           [](const CallSpec& call) { return accepts_norm(call, 0, 0, 0); },
           [](const CallSpec& call) {
             const auto a = from_attrs<LayerNormAttrs>(call.attrs);
             return prepare_norm(call, a.axes, a.eps, true);
           },
           over_x},
          {"cpu.layer_norm_grad", "layer_norm_grad",
           [](const CallSpec& call) { return accepts_norm(call, 1, 2, 2); },
           [](const CallSpec& call) {
             return prepare_norm_grad(call, from_attrs<LayerNormGradAttrs>(call.attrs).axes, true);
           },
           over_dy_or_x}};
}

}  // namespace aloft::cpu
