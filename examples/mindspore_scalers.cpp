// MindSpore's loss scales beside one another: the managers that a training network is given, and
// the scalers of loops of one's own, each told of the same overflow.
//
//   net = amp.build_train_network(network, optimizer, loss_fn, level="O2",
//                                 loss_scale_manager=amp.FixedLossScaleManager(1024))
#include <aloft/aloft.h>
#include <aloft/mindspore.h>
#include <fmt/format.h>

#include <limits>

#include "points.h"
using namespace aloft;

// The loss of the last step of an epoch, and the scale that it was multiplied with.
std::pair<double, double> trained(const char* name, const amp::TrainNetworkOptions& options,
                                  const char* level = "O2") {
  manual_seed(1);
  Loader dataset(noisy_prototypes(1000), {.batch = 50});
  models::Mlp network({784, 64, 10}, relu);
  auto train_network = amp::build_train_network(
      network, optim::Momentum{.lr = 0.02},
      [](const Tensor& outputs, const Tensor& label) { return cross_entropy(outputs, label); },
      level, options);
  double loss = 0, scale = 0;
  for (auto [data, label] : dataset) {
    const StepResult step = train_network(data, label);
    loss = step.loss();
    scale = step.loss_scale.item();
  }
  fmt::print("{:<26}loss {:.3f}, scale {}\n", name, loss, scale);
  return {loss, scale};
}

int main() {
  ms::set_context({.mode = ms::GRAPH_MODE});
  const auto fixed = trained("FixedLossScaleManager",
                             {.loss_scale_manager = amp::FixedLossScaleManager(1024, true)});
  const auto moved = trained("DynamicLossScaleManager",
                             {.loss_scale_manager = amp::DynamicLossScaleManager(256, 4, 8)});
  const auto none = trained("none, O3 with f32 norms",
                            {.keep_batchnorm_fp32 = true, .loss_scale_manager = nullptr}, "O3");
  const auto full_type = trained("cast_model_type f32", {.cast_model_type = DType::F32}, "O3");
  bool as_wanted = fixed.second == 1024 && moved.second == 4096 && none.second == 1;
  for (const auto& run : {fixed, moved, none, full_type}) as_wanted = as_wanted && run.first < 1.5;

  // On the host: one overflow, then two steps without.
  amp::DynamicLossScaler scaler(1024, 2, 2);
  const amp::StaticLossScaler still(128);
  ms::DynamicLossScaleUpdateCell cell(1024, 2, 2);
  const ms::FixedLossScaleUpdateCell fixed_cell(128);
  amp::DynamicLossScaleManager manager(1024, 2, 2);
  const double huge = std::numeric_limits<double>::infinity();
  for (const double gradient : {huge, 1.0, 1.0}) {
    const Tensor is_finite = amp::all_finite({full({3}, gradient)});
    scaler.adjust(is_finite);
    cell(logical_not(is_finite));
    fixed_cell(logical_not(is_finite));
    manager.update_loss_scale(gradient == huge);
    fmt::print("gradient {}: scales {} {} {} {} {}\n", gradient, scaler.scale_value(),
               cell.scale_value(), manager.get_loss_scale(), still.scale_value(),
               fixed_cell.get_loss_scale());
  }
  const Tensor loss = full(Shape{}, 0.25);
  const double there_and_back = scaler.unscale(scaler.scale(loss)).item();
  as_wanted = as_wanted && scaler.scale_value() == 1024 && cell.scale_value() == 1024 &&
              manager.get_loss_scale() == 1024 && still.scale(loss).item() == 32 &&
              there_and_back == 0.25 && manager.get_drop_overflow_update();
  return as_wanted ? 0 : 1;
}
