// GradientFusion(fusion_size), as an article about mixed precision on Ascend calls what the fork of
// apex for it calls combine_grad. There gradients are copied into pieces of memory, so that few
// kernels check, divide, clip and apply all of them. Here each of these is one sweep over all
// gradients where they lie (ops/grad_stats.h, ops/update.h): nothing is copied, and the size
// decides nothing. What a program asks of the joined gradients is there:
//
//   const amp::GradientFusion fusion(32 << 20);
//   amp::scale_loss(loss, optimizer).backward();
//   const amp::FusedGradients all = fusion.of(optimizer);  // their norm; whether all are finite
//   amp::step(optimizer);                                  // one sweep over all of them
#pragma once

#include <cstdint>

#include "frontend/optimizer.h"

namespace aloft::amp {

class GradScaler;  // frontend/grad_scaler.h

// All gradients of an optimizer, as one tensor of them would tell.
struct FusedGradients {
  Tensor norm;            // f32[]: global L2 norm; not finite where an element is not
  Tensor finite;          // i32[]: 1 where all elements are finite, else 0
  std::int64_t elements;  // of all of them together
};

// Looks at all gradients of an optimizer at once, between a block of scale_loss() and the step.
class GradientFusion {
 public:
  // Bytes that would be put together in one piece of memory; the default is 32 MiB. UserError E0814
  // below 1.
  explicit GradientFusion(std::int64_t fusion_size = std::int64_t{32} << 20);

  // What it was made with.
  std::int64_t fusion_size() const { return fusion_size_; }

  // Reads the gradients that backward() left for the optimizer's parameters once, and leaves them.
  // UserError E0808 where there are none, or they are multiplied with the optimizer's loss scale
  // still: within a block of scale_loss(), or behind one with delay_unscale. What a program itself
  // has scaled is looked at as it is.
  FusedGradients of(const Optimizer& optimizer) const;
  // The same of a loop with a GradScaler, before or behind its unscale_(): the norm is that of the
  // divided gradients, which stay what they are. UserError E0808 where there are none, where one is
  // of a loss that this scaler has not scaled, or the optimizer has a loss scale of its own that is
  // not the scaler's.
  //
  //   scaler.scale(loss).backward();
  //   const amp::FusedGradients all = fusion.of(optimizer, scaler);
  //   scaler.step(optimizer);
  //   scaler.update();
  FusedGradients of(const Optimizer& optimizer, const GradScaler& scaler) const;

 private:
  std::int64_t fusion_size_;
};

}  // namespace aloft::amp
