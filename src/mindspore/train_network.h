// mindspore.amp.build_train_network: a network, its loss and its optimizer as one step, which
// minimize() takes (frontend/optimizer.h), in a level's precision and with a level's loss scale.
//
//   auto train_network = amp::build_train_network(network, optim::Momentum{.lr = 0.01},
//                                                 cross_entropy_loss, "O2");
//   StepResult r = train_network(data, label);
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "frontend/loss_scalers.h"
#include "frontend/optimizer.h"
#include "mindspore/mixed_precision.h"

namespace aloft::amp {

// A loss scale manager, or none at all: nullptr, as None there.
class LossScaleManager {
 public:
  LossScaleManager(std::nullptr_t) : rule_(scalar::no_scaler()) {}
  LossScaleManager(const FixedLossScaleManager& manager) : rule_(manager.rule()) {}
  LossScaleManager(const DynamicLossScaleManager& manager) : rule_(manager.rule()) {}
  const scalar::ScalerRule& rule() const { return rule_; }  // of the step's optimizer

 private:
  scalar::ScalerRule rule_;
};

// What a level says where nothing is set: O2 keeps norms in f32 and has a
// DynamicLossScaleManager(), every other level has no loss scale; but O0 over a network to which an
// earlier step or Model has given its level has the loss scale of that one.
struct TrainNetworkOptions {
  std::optional<DType> cast_model_type = {};     // f16: as O2 or O3; f32: those levels as O0
  std::optional<bool> keep_batchnorm_fp32 = {};  // at O2, O3: the one with norms in f32, or O3
  std::optional<LossScaleManager> loss_scale_manager = {};  // also of levels that have none
};

// Inside: the level that the options come to, and the loss scale.
struct TrainNetworkPlan {
  std::string_view level;
  scalar::ScalerRule scaler;
};
TrainNetworkPlan plan_train_network(std::string_view level, const TrainNetworkOptions& options);
// The same over a network.
TrainNetworkPlan plan_train_network(const nn::Module& network, std::string_view level,
                                    const TrainNetworkOptions& options);

// Inside: the loss of a network for data and label. A network under a precision already, as
// auto_mixed_precision() gives it, is called as it is.
using LossOfBatch = std::function<Tensor(const Tensor& data, const Tensor& label)>;
template <class N, class Loss>
LossOfBatch loss_of_batch(const N& call, Loss loss_fn) {
  if constexpr (std::is_same_v<Loss, std::nullptr_t>) {
    return [call](const Tensor& data, const Tensor& label) { return call(data, label); };
  } else {
    need_assigned(loss_fn, "the loss");
    return [call, loss_fn = std::move(loss_fn)](const Tensor& data, const Tensor& label) {
      return loss_fn(as_f32(call(data)), label);
    };
  }
}
template <class N>
nn::Module& module_of(N& network) {
  if constexpr (std::derived_from<N, nn::Module>)
    return network;
  else
    return network.model();
}
// Inside: what is called in the network's stead, under a level.
template <class N>
auto under_level(N& network, const TrainNetworkPlan& plan) {
  const MixedForm form = mix(module_of(network), plan.level, DType::F16, plan.scaler);
  if constexpr (std::derived_from<N, nn::Module>) {
    return MixedNet<N>(network, form);
  } else {
    static_cast<void>(form);
    return network;
  }
}

// One training step. Copies are one: they share the optimizer and what is compiled.
class TrainNetwork {
 public:
  TrainNetwork(LossOfBatch loss, const Optimizer& optimizer);  // as build_train_network() makes it

  // The gradients of the loss and one update, compiled or op by op as ms::set_context() says now.
  // What minimize() throws, and in graph mode what compile() does.
  StepResult operator()(const Tensor& data, const Tensor& label);
  // With the loss scale.
  Optimizer& optimizer();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// `network`: a module, or what auto_mixed_precision() or custom_mixed_precision() made of one (then
// level O0); `loss_fn(outputs, label)` a scalar, or nullptr where network(data, label) is the loss.
// Outputs come to it in f32. The optimizer is made of a specification, over all parameters of the
// network, with the loss scale. UserErrors as of Optimizer and auto_mixed_precision(), E0840 for a
// cast_model_type that is not f16 or f32.
template <class N, class Loss>
TrainNetwork build_train_network(N& network, const OptimizerSpec& optimizer, Loss loss_fn,
                                 std::string_view level = "O0",
                                 const TrainNetworkOptions& options = {}) {
  const TrainNetworkPlan plan = plan_train_network(module_of(network), level, options);
  const Optimizer made(optimizer, module_of(network).parameters(), plan.scaler);
  return {loss_of_batch(under_level(network, plan), std::move(loss_fn)), made};
}

}  // namespace aloft::amp
