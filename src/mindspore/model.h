// mindspore.train.Model: a network with its loss, optimizer and metrics, trained and evaluated by a
// call each.
//
//   ms::Model model(network, loss, optim::Momentum{.lr = 0.01, .momentum = 0.9},
//                   {.metrics = {"accuracy"}, .amp_level = "O2"});
//   model.train(2, train_dataset, {ms::LossMonitor(100)});
//   double accuracy = model.eval(test_dataset).at("accuracy");
//
// A step is amp::build_train_network()'s, a data set anything that a range-based for takes pairs
// {data, label} from, a Loader (aloft/loader.h) above all. Runs with a directory, a record and a
// report are `aloft train`'s and run_training()'s (train/trainer.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mindspore/callbacks.h"
#include "mindspore/metrics.h"
#include "mindspore/train_network.h"

namespace aloft::ms {

// What a Model is, besides network, loss and optimizer.
struct ModelOptions {
  std::vector<NamedMetric> metrics = {};  // what eval() measures
  // As of auto_mixed_precision(), with its loss scale; O0 over a network that another Model has
  // given its level: with the loss scale of that one.
  std::string amp_level = "O0";
  // As of amp::TrainNetworkOptions:
  std::optional<bool> keep_batchnorm_fp32 = {};
  std::optional<amp::LossScaleManager> loss_scale_manager = {};
};

// Inside: a data set, handed out batch by batch until `take` says false.
struct Dataset {
  using Take = std::function<bool(const Tensor& data, const Tensor& label)>;
  std::function<void(const Take& take)> each;  // an epoch, or the rest of one
  std::function<std::uint64_t()> position;
};
template <class D>
Dataset dataset_of(D& d) {
  Dataset all;
  all.each = [&d](const Dataset::Take& take) {
    for (auto&& [data, label] : d)
      if (!take(data, label)) return;
  };
  if constexpr (requires { d.position(); })
    all.position = [&d] { return d.position(); };
  else
    all.position = [] { return std::uint64_t{0}; };
  return all;
}

// Copies are one.
class Model {
 public:
  // The network is changed in place where amp_level is not O0, and has to live as long as the
  // model; `network` and `loss_fn` as of amp::build_train_network(), and a loss that is nullptr
  // leaves no outputs to measure: eval() measures the loss alone. UserErrors as of that call, E0841
  // for a metric that there is not.
  template <class N, class Loss>
  Model(N& network, Loss loss_fn, const OptimizerSpec& optimizer, const ModelOptions& options = {})
      : Model(amp::module_of(network), options) {
    const amp::TrainNetworkPlan plan = plan_of(amp::module_of(network), options);
    const Optimizer made(optimizer, amp::module_of(network).parameters(), plan.scaler);
    const auto call = amp::under_level(network, plan);
    set_network(call, loss_fn);
    set_training(amp::loss_of_batch(call, loss_fn), made);
  }
  // Of a network that is trained already: eval() and predict() alone. UserError E0841 for an
  // amp_level, which wants an optimizer.
  template <class N, class Loss>
  Model(N& network, Loss loss_fn, const ModelOptions& options = {})
      : Model(amp::module_of(network), options) {
    refuse_level(options);
    set_network(amp::under_level(network, {"O0", scalar::no_scaler()}), std::move(loss_fn));
  }

  // Trains from epoch initial_epoch on up to `epoch` epochs of the data set, in training mode. With
  // dataset_sink_mode in graph mode nobody looks at single steps: on_train_step_end comes once an
  // epoch, and with sink_size above 0 an epoch is so many steps, over the data set's own ends.
  // UserError E0841 without an optimizer, for epochs below 0, or a data set without a batch; what
  // minimize() and the data set throw.
  template <class D>
  void train(int epoch, D& train_dataset, const Callbacks& callbacks = {},
             bool dataset_sink_mode = false, std::int64_t sink_size = -1, int initial_epoch = 0) {
    train_on(dataset_of(train_dataset),
             {epoch, initial_epoch, sink_size, dataset_sink_mode, &callbacks});
  }
  // The metrics over an epoch of the data set, by name, in evaluation mode. UserError E0841 without
  // metrics, or for a data set without a batch.
  template <class D>
  std::map<std::string, double> eval(D& valid_dataset, const Callbacks& callbacks = {}) {
    return eval_on(dataset_of(valid_dataset), callbacks);
  }
  // What the network gives for a batch, in evaluation mode.
  Tensor predict(const Tensor& data);

  // With the loss scale. UserError E0841 where the model has none.
  Optimizer& optimizer();
  // One step, to be called in a loop of your own. UserError E0841 without an optimizer.
  amp::TrainNetwork& train_network();

 private:
  struct Course {
    int epoch, initial_epoch;
    std::int64_t sink_size;
    bool sinks;
    const Callbacks* callbacks;
  };
  struct State;

  Model(nn::Module& network, const ModelOptions& options);
  static amp::TrainNetworkPlan plan_of(const nn::Module& network, const ModelOptions& options);
  static void refuse_level(const ModelOptions& options);
  template <class N, class Loss>
  void set_network(const N& call, const Loss& loss_fn) {
    if constexpr (std::is_same_v<Loss, std::nullptr_t>) {
      set_evaluation({}, amp::loss_of_batch(call, nullptr), {});
    } else {
      const auto loss = [loss_fn](const Tensor& outputs, const Tensor& label) {
        return loss_fn(outputs, label);
      };
      set_evaluation([call](const Tensor& data) { return amp::as_f32(call(data)); }, {}, loss);
    }
  }
  void set_evaluation(std::function<Tensor(const Tensor&)> outputs, amp::LossOfBatch whole,
                      amp::LossOfBatch loss_of_outputs);
  void set_training(amp::LossOfBatch loss, const Optimizer& optimizer);
  void train_on(const Dataset& data, const Course& course);
  std::map<std::string, double> eval_on(const Dataset& data, const Callbacks& callbacks);

  std::shared_ptr<State> state_;
};

}  // namespace aloft::ms
