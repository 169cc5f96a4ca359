// Training loops in the words of apex and MindSpore; torch's: frontend/grad_scaler.h. Each is
// minimize() (frontend/optimizer.h) with its parts in sight; the same state, the same bits.
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
