// Norms of sums and gradients of norms that are added to others: the rows of layer_norm and
// rms_norm, with one addition more while a row is in the first cache.
#include "ops/add_norm.h"

#include "backends/cpu/rows/norm_kernels.h"
#include "ops/layer_norm.h"
#include "ops/rms_norm.h"

namespace aloft::cpu {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

// The norm and the sum may take the place of either operand.
Pairs over_operands(const CallSpec& call) {
  const int sum = static_cast<int>(call.out.size()) - 1;
  return {{0, sum}, {1, sum}, {0, 0}, {1, 0}};
}
Pairs over_residual_dy_or_x(const CallSpec&) { return {{0, 0}, {1, 0}, {2, 0}}; }

std::optional<Refusal> accepts(const CallSpec& call) { return accepts_norm(call, 0, 0, 0); }

}  // namespace

std::vector<Kernel> add_norm_kernels() {
  return {{"cpu.add_layer_norm", "add_layer_norm", accepts,
           [](const CallSpec& call) {
             const auto a = from_attrs<LayerNormAttrs>(call.attrs);
             return prepare_norm(call, a.axes, a.eps, true, true);
           },
           over_operands},
          {"cpu.add_rms_norm", "add_rms_norm", accepts,
           [](const CallSpec& call) {
             return prepare_norm(call, 1, from_attrs<RmsNormAttrs>(call.attrs).eps, false, true);
           },
           over_operands},
          {"cpu.layer_norm_grad_add", "layer_norm_grad_add",
           [](const CallSpec& call) { return accepts_norm(call, 2, 3, 2); },
           [](const CallSpec& call) {
             const auto a = from_attrs<LayerNormGradAttrs>(call.attrs);
             return prepare_norm_grad(call, a.axes, true, true);
           },
           over_residual_dy_or_x},
          {"cpu.rms_norm_grad_add", "rms_norm_grad_add",
           [](const CallSpec& call) { return accepts_norm(call, 2, 3, 1); },
           [](const CallSpec& call) { return prepare_norm_grad(call, 1, false, true); },
           over_residual_dy_or_x}};
}

}  // namespace aloft::cpu
