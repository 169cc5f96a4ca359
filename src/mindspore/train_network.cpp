#include "mindspore/train_network.h"

#include "base/error.h"
#include "frontend/compile.h"
#include "mindspore/context.h"
#include "precision/decide.h"

namespace aloft::amp {

TrainNetworkPlan plan_train_network(std::string_view level, const TrainNetworkOptions& o) {
  if (o.cast_model_type && *o.cast_model_type != DType::F16 && *o.cast_model_type != DType::F32)
    throw UserError("E0840", "a network is cast to no such type")
        .saw(std::string(name_of(*o.cast_model_type)))
        .need("f16 or f32");
  const bool is_cast = level == "O2" || level == "O3";
  const DType type = o.cast_model_type.value_or(is_cast ? DType::F16 : DType::F32);
  const bool keeps_norms = o.keep_batchnorm_fp32.value_or(level == "O2");
  TrainNetworkPlan plan{level, scalar::no_scaler()};
  if (type == DType::F16)
    plan.level = keeps_norms ? "O2" : "O3";
  else if (is_cast)
    plan.level = "O0";
  if (o.loss_scale_manager)
    plan.scaler = o.loss_scale_manager->rule();
  else if (level == "O2")
    plan.scaler = DynamicLossScaleManager().rule();
  return plan;
}

TrainNetworkPlan plan_train_network(const nn::Module& network, std::string_view level,
                                    const TrainNetworkOptions& options) {
  TrainNetworkPlan plan = plan_train_network(level, options);
  const Policy policy = network.policy();
  if (plan.level != "O0" || options.loss_scale_manager || !policy) return plan;
  const ScalePolicy scale = policy.recipe().scale;
  if (scale == ScalePolicy::Fixed || scale == ScalePolicy::Dynamic)
    plan.scaler = scaler_rule(policy.recipe());
  return plan;
}

struct TrainNetwork::State {
  State(LossOfBatch loss_of, const Optimizer& by) : loss(std::move(loss_of)), optimizer(by) {}
  StepResult step(const Tensor& data, const Tensor& label) {
    return minimize(loss(data, label), optimizer);
  }

  LossOfBatch loss;
  Optimizer optimizer;
  Compiled<std::function<StepResult(const Tensor&, const Tensor&)>> compiled{
      [this](const Tensor& data, const Tensor& label) { return step(data, label); },
      {.name = "train_network"}};
};

TrainNetwork::TrainNetwork(LossOfBatch loss, const Optimizer& optimizer)
    : state_(std::make_shared<State>(std::move(loss), optimizer)) {}

StepResult TrainNetwork::operator()(const Tensor& data, const Tensor& label) {
  return ms::get_mode() == ms::GRAPH_MODE ? state_->compiled(data, label)
                                          : state_->step(data, label);
}

Optimizer& TrainNetwork::optimizer() { return state_->optimizer; }

}  // namespace aloft::amp
