// rms_norm and its gradient.
#include "ops/rms_norm.h"

#include "backends/cpu/rows/norm_kernels.h"

namespace aloft::cpu {

std::vector<Kernel> rms_norm_kernels() {
  return {
      {"cpu.rms_norm", "rms_norm", [](const CallSpec& call) { return accepts_norm(call, 0, 0, 0); },
       [](const CallSpec& call) {
         return prepare_norm(call, 1, from_attrs<RmsNormAttrs>(call.attrs).eps, false);
       },
       over_x},
      {"cpu.rms_norm_grad", "rms_norm_grad",
       [](const CallSpec& call) { return accepts_norm(call, 1, 2, 1); },
       [](const CallSpec& call) { return prepare_norm_grad(call, 1, false); }, over_dy_or_x}};
}

}  // namespace aloft::cpu
