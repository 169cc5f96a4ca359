// The loop of MindSpore's page on mixed precision, line for line: level O2, a loss scaler of the
// loop's own, value_and_grad with more than a loss, jit around the step.
//
//   model = auto_mixed_precision(Network(), "O2")
//   loss_scaler = DynamicLossScaler(scale_value=2**16, scale_factor=2, scale_window=50)
//   def forward_fn(data, label):
//       logits = model(data)
//       loss = loss_fn(logits, label)
//       return loss_scaler.scale(loss), logits
//   grad_fn = value_and_grad(forward_fn, None, model.trainable_params(), has_aux=True)
//   @jit
//   def train_step(data, label):
//       (loss, _), grads = grad_fn(data, label)
//       loss = loss_scaler.unscale(loss)
//       is_finite = all_finite(grads)
//       if is_finite:
//           optimizer(loss_scaler.unscale(grads))
//       loss_scaler.adjust(is_finite)
//       return loss
#include <aloft/aloft.h>
#include <aloft/mindspore.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

int main() {
  manual_seed(1);
  Loader dataset(noisy_prototypes(2000), {.batch = 64});

  nn::Sequential network;
  network.add<nn::Linear>(784, 512).add(relu).add<nn::Linear>(512, 512).add(relu);
  network.add<nn::Linear>(512, 10);
  const auto model = amp::auto_mixed_precision(network, "O2");
  // The scale is the loop's: the optimizer has none.
  Optimizer optimizer(optim::Sgd{.lr = 1e-1}, network.parameters(), scalar::no_scaler());
  amp::DynamicLossScaler loss_scaler(65536, 2, 50);

  const auto forward_fn = [&](const Tensor& data, const Tensor& label) {
    const Tensor logits = model(data);
    const Tensor loss = cross_entropy(logits, label);
    return std::pair{loss_scaler.scale(loss), logits};
  };
  const auto grad_fn = value_and_grad(forward_fn, network.parameters(), {.has_aux = true});
  auto train_step = ms::jit([&](const Tensor& data, const Tensor& label) {
    const auto [value, grads] = grad_fn(data, label);
    const Tensor loss = loss_scaler.unscale(value.first);
    const Tensor is_finite = amp::all_finite(grads);
    // Gradients that are not finite change nothing: the update sees to that by itself.
    apply_gradients(loss, loss_scaler.unscale(grads), optimizer);
    loss_scaler.adjust(is_finite);
    return loss;
  });

  double last = 0;
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (auto [data, label] : dataset) last = train_step(data, label).item();
    fmt::print("epoch {}: loss {:.4f}, scale {}\n", epoch + 1, last, loss_scaler.scale_value());
  }
  return last < 0.5 ? 0 : 1;
}
