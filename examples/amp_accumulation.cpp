// Gradient accumulation, as PyTorch's page of amp examples has it: gradients of several batches add
// up scaled; unscale_(), step() and update() come once behind the last of them.
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

int main() {
  manual_seed(1);
  constexpr int kToAccumulate = 4;
  Loader data(noisy_prototypes(2048), {.batch = 32});
  models::Mlp model({784, 256, 10}, relu);
  Optimizer optimizer(optim::AdamW{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  amp::GradScaler scaler;
  double last = 0;
  int i = 0, steps = 0;
  for (auto [input, target] : data) {
    Tensor loss;
    {
      const amp::autocast scope({.dtype = DType::F16});
      const Tensor output = model(input);
      loss = cross_entropy(output, target);
      loss = loss / kToAccumulate;
    }
    scaler.scale(loss).backward();
    last = kToAccumulate * loss.item();
    if ((i++ + 1) % kToAccumulate == 0) {
      // May unscale_ here, to clip what the batches have left together.
      scaler.unscale_(optimizer);
      const Tensor norm = clip_grad_norm_(model.parameters(), 1.0);
      scaler.step(optimizer);
      scaler.update();
      optimizer.zero_grad();
      fmt::print("step {:2}: loss {:.4f}, gradient norm {:.3f}\n", ++steps, last, norm.item());
    }
  }
  return steps == 16 && last < 1 ? 0 : 1;
}
