// MindSpore's functional form: value_and_grad, and jit around the whole step.
//
//   grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)
//   @ms.jit
//   def train_step(data, label):
//       loss, grads = grad_fn(data, label)
//       optimizer(grads)
//       return loss
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

int main() {
  manual_seed(1);
  Loader loader(noisy_prototypes(2000), {.batch = 64});
  models::Mlp model({784, 256, 10}, relu);
  auto [net, opt] = amp::initialize(model, optim::Momentum{.lr = 0.02}, "O2:bf16");

  auto forward = [&net = net](Tensor x, Tensor label) { return cross_entropy(net(x), label); };
  auto grad_fn = value_and_grad(forward, opt);
  auto train_step = [&grad_fn, &opt = opt](Tensor x, Tensor label) {
    const auto [loss, gradients] = grad_fn(x, label);
    return apply_gradients(loss, gradients, opt);
  };
  auto jit = compile(train_step);  // graph mode; call train_step itself for eager (pynative) mode

  double last = 0;
  for (auto [x, label] : loader) {
    last = jit(x, label).loss();
    fmt::print("loss {:.4f}\n", last);
  }
  return last < 0.5 ? 0 : 1;
}
