#include "frontend/loops.h"

#include "frontend/left_gradients.h"
#include "ops/binary.h"

namespace aloft::amp {
Tensor scale_loss(const Tensor& loss, const Optimizer& optimizer) {
  EmitterScope scope(emitter_of(loss));
  return loss * current_emitter().state(optimizer.scale);
}

StepResult step(const Tensor& loss, Optimizer& optimizer) {
  const VariablePtr* scale =
      optimizer.scaler().kind == scalar::ScalerKind::None ? nullptr : &optimizer.scale;
  return apply_gradients(loss, left_gradients(optimizer, scale), optimizer);
}

}  // namespace aloft::amp
