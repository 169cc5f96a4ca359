// One GradScaler for two models with an optimizer each: every number that it is made with, clipping
// of both by the norm of both, a scale that the program sets, and a state that goes on elsewhere.
//
//   scaler.scale(loss).backward()
//   for optimizer in (optimizer0, optimizer1):
//       scaler.unscale_(optimizer)
//   norm = get_total_norm([p.grad for p in parameters])
//   clip_grads_with_norm_(parameters, 1.0, norm)
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

int main() {
  manual_seed(1);
  Loader loader(noisy_prototypes(2000), {.batch = 64});
  models::Mlp body({784, 64}, relu), head({64, 10}, relu);
  Optimizer optimizer0(optim::AdamW{.lr = 1e-3}, body.parameters(), scalar::no_scaler());
  Optimizer optimizer1(optim::Sgd{.lr = 0.5}, head.parameters(), scalar::no_scaler());
  std::vector<VariablePtr> parameters = body.parameters();
  for (const VariablePtr& p : head.parameters()) parameters.push_back(p);

  amp::GradScaler scaler({.init_scale = 1024,
                          .growth_factor = 4,
                          .backoff_factor = 0.25,
                          .growth_interval = 10,
                          .enabled = true});
  int step = 0;
  double first = 0, last = 0, largest = 0;
  for (auto [x, label] : loader) {
    optimizer0.zero_grad();
    optimizer1.zero_grad();
    Tensor loss;
    {
      const amp::autocast scope({.dtype = DType::F16});
      loss = cross_entropy(head(relu(body(x))), label);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer0);
    scaler.unscale_(optimizer1);
    std::vector<Tensor> gradients;
    for (const VariablePtr& p : parameters) gradients.push_back(grad_of(p));
    const Tensor norm = get_total_norm(gradients);
    clip_grads_with_norm_(parameters, 1.0, norm);
    clip_grad_value_(parameters, 0.25);
    scaler.step(optimizer0);
    scaler.step(optimizer1);
    // Behind ten steps the program goes back to the scale that it began with, and doubles from then
    // on.
    if (++step == 10) {
      scaler.update(1024);
      scaler.set_growth_factor(2);
      scaler.set_backoff_factor(0.5);
      scaler.set_growth_interval(20);
    } else {
      scaler.update();
    }
    last = loss.item();
    largest = std::max(largest, norm.item());
    if (step == 1) first = last;
  }
  fmt::print("loss {:.3f} to {:.3f}, largest norm {:.2f}\n", first, last, largest);
  fmt::print("scale {}: times {} behind {} finite steps, times {} behind another\n",
             scaler.get_scale(), scaler.get_growth_factor(), scaler.get_growth_interval(),
             scaler.get_backoff_factor());

  // As torch.save(scaler.state_dict()) and load_state_dict() of it.
  const std::string saved = scaler.state_dict().str();
  amp::GradScaler again;
  again.load_state_dict(amp::GradScalerState::parse(saved));
  fmt::print("{}\n", saved);
  const bool goes_on = again.get_scale() == scaler.get_scale() && again.is_enabled();
  // One that is not enabled scales with 1: the same loop in fp32 or bf16.
  const amp::GradScaler off({.enabled = false});
  return last < 0.5 * first && scaler.get_scale() == 2048 && goes_on && off.get_scale() == 1 ? 0
                                                                                             : 1;
}
