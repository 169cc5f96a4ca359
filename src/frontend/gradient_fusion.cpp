#include "frontend/gradient_fusion.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "frontend/eager.h"
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

FusedGradients GradientFusion::of(const Optimizer& optimizer) const {
  const ScopeRecord& r = optimizer.scope_record();
  std::vector<Tensor> gradients;
  std::int64_t elements = 0;
  for (const VariablePtr& p : optimizer.given()) {
    const Tensor gradient = grad_of(p);
    if (!gradient.is_defined()) continue;
    gradients.push_back(gradient);
    elements += gradient.shape().max_numel();
  }
  if (gradients.empty())
    throw UserError("E0808", "there are no gradients to look at together")
        .saw("an optimizer for which no backward() has left one since its last step")
        .need("backward() on a loss that depends on its parameters");
  const bool has_scale = optimizer.scaler().kind != scalar::ScalerKind::None;
  if (r.is_in_scope || (has_scale && r.stage != ScopeRecord::Stage::Unscaled))
    throw UserError("E0808", "the gradients are multiplied with a loss scale still")
        .saw("GradientFusion::of() before a block of amp::scale_loss() has divided them")
        .need("the block's end, without delay_unscale, before it");
  const UpdatePhase phase;
  const GradStats stats = grad_stats(full({}, 1.0, DType::F32), gradients);
  return {stats.norm, stats.finite, elements};
}

}  // namespace aloft::amp
