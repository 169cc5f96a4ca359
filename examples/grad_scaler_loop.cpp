// The loop of torch.amp: autocast, a GradScaler, gradients that are clipped in between.
//
//   for x, label in loader:
//       optimizer.zero_grad()
//       with torch.autocast("cpu", dtype=torch.float16):
//           loss = F.cross_entropy(model(x), label)
//       scaler.scale(loss).backward()
//       scaler.unscale_(optimizer)
//       torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
//       scaler.step(optimizer)
//       scaler.update()
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

int main() {
  manual_seed(1);
  Loader loader(noisy_prototypes(2000), {.batch = 64});
  models::Mlp model({784, 256, 10}, relu);
  Optimizer optimizer(optim::AdamW{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  amp::GradScaler scaler;
  double last = 0;
  for (auto [x, label] : loader) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast scope({.dtype = DType::F16});
      loss = cross_entropy(model(x), label);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    const Tensor norm = clip_grad_norm_(model.parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
    last = loss.item();
    fmt::print("loss {:.4f}  gradient norm {:.3f}  scale {}\n", last, norm.item(),
               scaler.get_scale());
  }
  return last < 0.5 ? 0 : 1;
}
