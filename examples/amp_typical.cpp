// Typical mixed precision training, the first loop of PyTorch's page of amp examples: the forward
// pass and the loss in an autocast block, backward and step outside of it.
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

int main() {
  manual_seed(1);
  Loader data(noisy_prototypes(2000), {.batch = 64});
  models::Mlp model({784, 256, 10}, relu);
  Optimizer optimizer(optim::Sgd{.lr = 0.1}, model.parameters(), scalar::no_scaler());
  amp::GradScaler scaler;
  double first = 0, last = 0;
  bool was_low = true;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto [input, target] : data) {
      optimizer.zero_grad();
      Tensor output, loss;
      {
        const amp::autocast scope({.dtype = DType::F16});
        output = model(input);
        loss = cross_entropy(output, target);
      }
      was_low = was_low && output.dtype() == DType::F16 && loss.dtype() == DType::F32;
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      last = loss.item();
      if (first == 0) first = last;
    }
    fmt::print("epoch {}: loss {:.4f}, scale {}\n", epoch, last, scaler.get_scale());
  }
  return was_low && last < 0.5 && last < first / 4 ? 0 : 1;
}
