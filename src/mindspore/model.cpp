#include "mindspore/model.h"

#include "base/error.h"
#include "frontend/compile.h"
#include "mindspore/context.h"

namespace aloft::ms {

using Pair = std::pair<Tensor, Tensor>;  // loss and outputs of a batch; one may be undefined

struct Model::State {
  nn::Module* network = nullptr;
  // As it was when the model was made: what its loss scale goes with.
  Policy policy = {};
  std::map<std::string, Policy> below = {};
  std::vector<std::pair<std::string, std::shared_ptr<Metric>>> metrics = {};
  std::optional<amp::TrainNetwork> train_network = {};
  std::function<Tensor(const Tensor&)> outputs = {};
  amp::LossOfBatch whole = {}, loss_of_outputs = {};

  void take_precision() { policy = network->policy(), below = network->policies_below(); }
  void check_precision() const {
    if (network->policy() == policy && network->policies_below() == below) return;
    throw UserError("E0805", "the network has another precision than when this model was made")
        .saw(network->policy() ? network->policy().str() : "layers that have one")
        .need(policy ? policy.str() : "none, as by amp_level O0")
        .advice(
            "a network has one precision: make the model that gives it one first, and others, "
            "with amp_level O0, behind it");
  }
  EvalBatch evaluate(const Tensor& data, const Tensor& label) const {
    if (whole) return {whole(data, label), Tensor(), label};
    const Tensor y = outputs(data);
    return {loss_of_outputs(y, label), y, label};
  }
  Compiled<std::function<std::vector<Tensor>(const Tensor&, const Tensor&)>> compiled_evaluation{
      [this](const Tensor& data, const Tensor& label) {
        const EvalBatch b = evaluate(data, label);
        std::vector<Tensor> results = {b.loss};
        if (b.outputs.is_defined()) results.push_back(b.outputs);
        return results;
      },
      {.name = "eval_network"}};
  Compiled<std::function<Tensor(const Tensor&)>> compiled_prediction{
      [this](const Tensor& data) { return outputs(data); }, {.name = "predict_network"}};
};

namespace {

// Evaluation, or training, until the end of the block.
class ModeScope {
 public:
  ModeScope(nn::Module& network, bool trains) : network_(network), before_(network.is_training()) {
    network.train(trains);
  }
  ~ModeScope() { network_.train(before_); }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  nn::Module& network_;
  bool before_;
};

using Handler = void (Callback::*)(RunContext&);
void tell(const Callbacks& callbacks, Handler handler, RunContext& run) {
  for (const AnyCallback& callback : callbacks) (callback.operator->()->*handler)(run);
}

void need_batch(const RunContext& run) {
  if (run.step_in_epoch == 0)
    throw UserError("E0841", "the data set has no batch").need("one or more an epoch");
}

}  // namespace

Model::Model(nn::Module& network, const ModelOptions& options) : state_(std::make_shared<State>()) {
  state_->network = &network;
  for (const NamedMetric& m : options.metrics) {
    std::shared_ptr<Metric> metric = m.own;
    if (!metric) metric = get_metric_fn(m.name);
    state_->metrics.emplace_back(m.name, std::move(metric));
  }
}

amp::TrainNetworkPlan Model::plan_of(const nn::Module& network, const ModelOptions& options) {
  return amp::plan_train_network(network, options.amp_level,
                                 {.keep_batchnorm_fp32 = options.keep_batchnorm_fp32,
                                  .loss_scale_manager = options.loss_scale_manager});
}

void Model::refuse_level(const ModelOptions& options) {
  if (options.amp_level != "O0")
    throw UserError("E0841", "a model without an optimizer has no mixed precision of its own")
        .saw("amp_level " + options.amp_level)
        .advice("amp_level O0, of a network that auto_mixed_precision() gave; or an optimizer");
}

void Model::set_evaluation(std::function<Tensor(const Tensor&)> outputs, amp::LossOfBatch whole,
                           amp::LossOfBatch loss_of_outputs) {
  state_->outputs = std::move(outputs);
  state_->whole = std::move(whole);
  state_->loss_of_outputs = std::move(loss_of_outputs);
  state_->take_precision();
}

void Model::set_training(amp::LossOfBatch loss, const Optimizer& optimizer) {
  state_->train_network.emplace(std::move(loss), optimizer);
}

amp::TrainNetwork& Model::train_network() {
  if (!state_->train_network)
    throw UserError("E0841", "this model has no optimizer").need("network, loss and optimizer");
  return *state_->train_network;
}

Optimizer& Model::optimizer() { return train_network().optimizer(); }

void Model::train_on(const Dataset& data, const Course& course) {
  if (course.epoch < 0 || course.initial_epoch < 0)
    throw UserError("E0841", "a number of epochs is out of range")
        .saw(std::to_string(course.epoch) + " from " + std::to_string(course.initial_epoch))
        .need("0 or more");
  amp::TrainNetwork& step = train_network();
  state_->check_precision();
  const ModeScope training(*state_->network, true);
  const Callbacks& callbacks = *course.callbacks;
  const bool sinks = course.sinks && get_mode() == GRAPH_MODE;
  const std::int64_t most = course.sinks && course.sink_size > 0 ? course.sink_size : INT64_MAX;
  RunContext run;
  StepResult result;
  run.epoch_num = course.epoch;
  run.dataset_sink_mode = course.sinks;
  run.network = state_->network;
  run.optimizer = &step.optimizer();
  const auto take = [&](const Tensor& x, const Tensor& label) {
    ++run.cur_step_num, ++run.step_in_epoch;
    run.data_position = data.position();
    if (!sinks) tell(callbacks, &Callback::on_train_step_begin, run);
    result = step(x, label);
    run.result = &result;
    if (!sinks) tell(callbacks, &Callback::on_train_step_end, run);
    return !run.get_stop_requested() && run.step_in_epoch < most;
  };
  tell(callbacks, &Callback::on_train_begin, run);
  for (int e = course.initial_epoch; e < course.epoch && !run.get_stop_requested(); ++e) {
    run.cur_epoch_num = e + 1;
    run.step_in_epoch = 0;
    tell(callbacks, &Callback::on_train_epoch_begin, run);
    do {
      const std::int64_t before = run.step_in_epoch;
      data.each(take);
      if (run.step_in_epoch == before) break;  // nothing comes any more
    } while (most != INT64_MAX && run.step_in_epoch < most && !run.get_stop_requested());
    need_batch(run);
    if (sinks) tell(callbacks, &Callback::on_train_step_end, run);
    tell(callbacks, &Callback::on_train_epoch_end, run);
  }
  tell(callbacks, &Callback::on_train_end, run);
}

std::map<std::string, double> Model::eval_on(const Dataset& data, const Callbacks& callbacks) {
  if (state_->metrics.empty())
    throw UserError("E0841", "this model measures nothing")
        .need("metrics, such as {.metrics = {\"accuracy\"}}");
  state_->check_precision();
  const ModeScope evaluation(*state_->network, false);
  const NoGrad no_grad;
  RunContext run;
  run.network = state_->network;
  for (const auto& [name, metric] : state_->metrics) metric->clear();
  tell(callbacks, &Callback::on_eval_begin, run);
  data.each([&](const Tensor& x, const Tensor& label) {
    ++run.cur_step_num, ++run.step_in_epoch;
    tell(callbacks, &Callback::on_eval_step_begin, run);
    EvalBatch batch;
    if (get_mode() == GRAPH_MODE) {
      const std::vector<Tensor> all = state_->compiled_evaluation(x, label);
      batch = {all[0], all.size() > 1 ? all[1] : Tensor(), label};
    } else {
      batch = state_->evaluate(x, label);
    }
    for (const auto& [name, metric] : state_->metrics) metric->update(batch);
    tell(callbacks, &Callback::on_eval_step_end, run);
    return !run.get_stop_requested();
  });
  need_batch(run);
  for (const auto& [name, metric] : state_->metrics) run.metrics[name] = metric->eval();
  tell(callbacks, &Callback::on_eval_end, run);
  return run.metrics;
}

Tensor Model::predict(const Tensor& data) {
  if (!state_->outputs)
    throw UserError("E0841", "this model's network gives its loss, and no outputs")
        .need("a network of one argument, and a loss");
  state_->check_precision();
  const ModeScope evaluation(*state_->network, false);
  const NoGrad no_grad;
  return get_mode() == GRAPH_MODE ? state_->compiled_prediction(data) : state_->outputs(data);
}

}  // namespace aloft::ms
