#include "frontend/gradient_fusion.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "frontend/eager.h"
#include "frontend/grad_scaler.h"
#include "frontend/loss_scales.h"
#include "frontend/update_phase.h"
#include "ops/constant.h"
#include "ops/grad_stats.h"
#include "ops/step_tensors.h"

namespace aloft::amp {

GradientFusion::GradientFusion(std::int64_t fusion_size) : fusion_size_(fusion_size) {
  if (fusion_size < 1)
    throw UserError("E0814", "fusion_size is out of range")
        .saw("fusion_size " + std::to_string(fusion_size))
        .need("1 or more bytes");
}

namespace {
// Those that backward() left.
std::vector<Tensor> gradients_of(const Optimizer& optimizer) {
  std::vector<Tensor> gradients;
  for (const VariablePtr& p : optimizer.given())
    if (const Tensor gradient = grad_of(p); gradient.is_defined()) gradients.push_back(gradient);
  if (gradients.empty())
    throw UserError("E0808", "there are no gradients to look at together")
        .saw("an optimizer for which no backward() has left one since its last step")
        .need("backward() on a loss that depends on its parameters");
  return gradients;
}

// `scale`: f32[], what they are multiplied with.
FusedGradients joined(const std::vector<Tensor>& gradients, const Tensor& scale) {
  std::int64_t elements = 0;
  for (const Tensor& gradient : gradients) elements += gradient.shape().max_numel();
  const UpdatePhase phase;
  const GradStats stats = grad_stats(scale, gradients);
  return {stats.norm, stats.finite, elements};
}
}  // namespace

FusedGradients GradientFusion::of(const Optimizer& optimizer) const {
  const ScopeRecord& r = optimizer.scope_record();
  const std::vector<Tensor> gradients = gradients_of(optimizer);
  const bool has_scale = optimizer.scaler().kind != scalar::ScalerKind::None;
  if (r.is_in_scope || (has_scale && r.stage != ScopeRecord::Stage::Unscaled))
    throw UserError("E0808", "the gradients are multiplied with a loss scale still")
        .saw("GradientFusion::of() before a block of amp::scale_loss() has divided them")
        .need(
            "the block's end, without delay_unscale, before it; in a loop with a GradScaler, "
            "of(optimizer, scaler)");
  return joined(gradients, full({}, 1.0, DType::F32));
}

FusedGradients GradientFusion::of(const Optimizer& optimizer, const GradScaler& scaler) const {
  const std::vector<Tensor> gradients = gradients_of(optimizer);
  return joined(gradients, scaler.scale_of_gradients(optimizer));
}

}  // namespace aloft::amp
