// Several models, losses and optimizers, as PyTorch's page of amp examples has them: one scaler for
// all, whose scale moves once a step, behind all of them. Where PyTorch asks for retain_graph, so
// that the second loss finds what both have in common, nothing is to be said here.
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

int main() {
  manual_seed(1);
  Loader data(noisy_prototypes(2000), {.batch = 64});
  models::Mlp model0({784, 64, 10}, relu), model1({784, 64, 10}, gelu);
  Optimizer optimizer0(optim::AdamW{.lr = 1e-3}, model0.parameters(), scalar::no_scaler());
  Optimizer optimizer1(optim::AdamW{.lr = 1e-3}, model1.parameters(), scalar::no_scaler());
  amp::GradScaler scaler;
  double last0 = 0, last1 = 0;
  for (auto [input, target] : data) {
    optimizer0.zero_grad();
    optimizer1.zero_grad();
    Tensor loss0, loss1;
    {
      const amp::autocast scope({.dtype = DType::F16});
      const Tensor output0 = model0(input);
      const Tensor output1 = model1(input);
      loss0 = cross_entropy(2 * output0 + 3 * output1, target);
      loss1 = cross_entropy(3 * output0 - 5 * output1, target);
    }
    // What both losses pass stays until both are through.
    scaler.scale(loss0).backward();
    scaler.scale(loss1).backward();
    // Gradients of one of them are looked at.
    scaler.unscale_(optimizer0);
    const Tensor norm = clip_grad_norm_(model0.parameters(), 10.0);
    scaler.step(optimizer0);
    scaler.step(optimizer1);
    scaler.update();
    last0 = loss0.item(), last1 = loss1.item();
    fmt::print("losses {:.4f} {:.4f}, gradient norm of the first model {:.3f}, scale {}\n", last0,
               last1, norm.item(), scaler.get_scale());
  }
  return last0 < 0.5 && last1 < 0.5 ? 0 : 1;
}
