// The training loop of NVIDIA apex, line by line, running op by op.
//
//   model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
//   with amp.scale_loss(loss, optimizer) as scaled_loss:
//       scaled_loss.backward()
//   optimizer.step()
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

int main() {
  manual_seed(1);
  Loader loader(noisy_prototypes(2000), {.batch = 64});
  models::Mlp model({784, 256, 10}, relu);
  auto [net, opt] = amp::initialize(model, optim::Momentum{.lr = 0.02}, "O1:fp16");
  double last = 0;
  int skipped = 0;
  for (auto [x, label] : loader) {
    const Tensor loss = cross_entropy(net(x), label);
    {
      auto scaled_loss = amp::scale_loss(loss, opt);
      scaled_loss.backward();
    }  // an overflow lowers the scale, and the step is skipped
    const StepResult result = amp::step(opt);
    skipped += result.skipped();
    last = loss.item();
    fmt::print("loss {:.4f}  scale {}\n", last, result.loss_scale.item());
  }
  fmt::print("{} steps skipped\n", skipped);
  return last < 0.5 ? 0 : 1;
}
