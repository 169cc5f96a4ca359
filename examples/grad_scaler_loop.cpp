// The loop of torch.amp with a GradScaler.
//
//   with torch.autocast("cpu", dtype=torch.float16):
//       loss = F.cross_entropy(model(x), label)
//   scaler.scale(loss).backward()
//   scaler.step(optimizer)
//   scaler.update()
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

int main() {
  manual_seed(1);
  Loader loader(noisy_prototypes(2000), {.batch = 64});
  models::Mlp model({784, 256, 10}, relu);
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3, .clip_norm = 1.0}, "O1:fp16");
  amp::GradScaler scaler(opt);
  double last = 0;
  for (auto [x, label] : loader) {
    const Tensor loss = cross_entropy(net(x), label);  // autocast is part of net
    scaler.scale(loss).backward();
    const StepResult result = scaler.step(loss);  // unscales, checks, clips, updates
    scaler.update();
    last = loss.item();
    fmt::print("loss {:.4f}  gradient norm {:.3f}\n", last, result.grad_norm.item());
  }
  return last < 0.5 ? 0 : 1;
}
