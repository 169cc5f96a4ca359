// Training loops in MindSpore's words; torch's: frontend/grad_scaler.h, apex's:
// frontend/scale_loss.h. Each is minimize() (frontend/optimizer.h) with its parts in sight; the
// same state, the same bits.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "frontend/assigned.h"
#include "frontend/optimizer.h"

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
