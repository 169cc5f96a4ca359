// Training loops in the words of other systems. Each is minimize() (frontend/optimizer.h) with its
// parts in sight; the same state, the same bits.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "frontend/assigned.h"
#include "frontend/optimizer.h"

namespace aloft::amp {

// apex: a loss times the loss scale, to call backward() on. Eager only. Gradients of several
// backward() are summed, those of micro-batches for example, until a step takes them or
// Optimizer::zero_grad() drops them.
//
//   amp::scale_loss(loss, opt).backward();
//   StepResult r = amp::step(loss, opt);
Tensor scale_loss(const Tensor& loss, const Optimizer& optimizer);
// One update from the gradients that backward() left for the optimizer's parameters, which are gone
// then; an overflow skips it and lowers the scale. UserError E0808 where backward() left none, or
// those of a loss that was not scaled though the optimizer has a loss scale.
StepResult step(const Tensor& loss, Optimizer& optimizer);

// torch.amp.GradScaler:
//
//   scaler.scale(loss).backward();
//   scaler.step(loss);
//   scaler.update();
class GradScaler {
 public:
  explicit GradScaler(Optimizer& optimizer) : optimizer_(optimizer) {}  // has to outlive it
  // The loss times the loss scale, f32[].
  Tensor scale(const Tensor& loss) const { return scale_loss(loss, optimizer_); }
  // One update from the gradients that backward() left, as amp::step, but for the scale. UserError
  // E0808 where there are none, or those of a loss that was not scaled.
  StepResult step(const Tensor& loss);
  // The next loss scale and random numbers. UserError E0808 without a step before it, DivergedError
  // E0810 where it was one too many without finite gradients.
  void update();

 private:
  Optimizer& optimizer_;
  StepResult last_;
};

}  // namespace aloft::amp

namespace aloft {

// MindSpore: f's loss together with its (scaled) gradients, for apply_gradients(). In both modes.
// UserError E0302 where f was never assigned.
//
//   auto loss_fn = [&](Tensor x, Tensor y) { return cross_entropy(net(x), y); };
//   auto grad_fn = value_and_grad(loss_fn, opt);
//   auto step = compile([&](Tensor x, Tensor y) {
//     auto [loss, gradients] = grad_fn(x, y);
//     return apply_gradients(loss, gradients, opt);
//   });
template <class F>
auto value_and_grad(F f, Optimizer& optimizer) {
  need_assigned(f, "value_and_grad()");
  return [f = std::move(f), &optimizer](auto&&... arguments) {
    const Tensor loss = f(std::forward<decltype(arguments)>(arguments)...);
    return std::pair<Tensor, std::vector<Tensor>>{loss, scaled_gradients(loss, optimizer)};
  };
}

}  // namespace aloft
