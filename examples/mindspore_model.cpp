// The rest of MindSpore's Model: batches sunk into the device, a callback that ends the training, a
// metric of one's own, checkpoints that another Model goes on from, and predictions.
//
//   model.train(20, dataset, callbacks=[ModelCheckpoint(directory=..., config=...),
//   StopsWhenGood()],
//               dataset_sink_mode=True)
#include <aloft/aloft.h>
#include <aloft/mindspore.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "points.h"
using namespace aloft;

struct StopsWhenGood : ms::Callback {
  int epochs = 0;
  void on_train_epoch_end(ms::RunContext& run) override {
    epochs = run.cur_epoch_num;
    if (run.loss() < 0.05) run.request_stop();
  }
  void on_eval_end(ms::RunContext& run) override {
    for (const auto& [name, value] : run.metrics) fmt::print("{} {:.3f}\n", name, value);
  }
};

// The share of rows that the network is sure of: more than nine tenths for one class.
struct Sureness : ms::Metric {
  double sure = 0, rows = 0;
  void clear() override { sure = rows = 0; }
  void update(const ms::EvalBatch& batch) override {
    for (const float p : max(softmax(batch.outputs), {1}).to_floats()) sure += p > 0.9f, ++rows;
  }
  double eval() const override { return sure / rows; }
};

struct Network : models::Mlp {
  Network() : Mlp({784, 64, 10}, relu) {}
};

int main() {
  manual_seed(1);
  ms::set_context({.mode = ms::GRAPH_MODE});
  Loader train_dataset(noisy_prototypes(1000), {.batch = 50});
  Loader test_dataset(noisy_prototypes(200), {.batch = 50, .shuffle = false});
  const ms::SoftmaxCrossEntropyWithLogits loss{.sparse = true, .reduction = "mean"};
  const optim::Momentum opt{.lr = 0.02, .momentum = 0.9};
  const ms::ModelOptions options{
      .metrics = {"accuracy", "loss", {"sureness", std::make_shared<Sureness>()}},
      .amp_level = "O3",
      .keep_batchnorm_fp32 = true,
      .loss_scale_manager = amp::DynamicLossScaleManager(1024)};

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("aloft-model-{}", getpid());
  Network network;
  ms::Model model(network, loss, opt, options);
  StopsWhenGood stop;
  {
    ms::ModelCheckpoint saver(folder.string(),
                              {.save_checkpoint_steps = 20, .keep_checkpoint_max = 2});
    const bool sinks = true;  // callbacks hear of a step once an epoch
    model.train(20, train_dataset, {std::ref(stop), std::ref(saver)}, sinks);
  }  // the folder is free for another process
  const double accuracy = model.eval(test_dataset, {std::ref(stop)}).at("accuracy");
  fmt::print("stopped behind {} epochs of 20\n", stop.epochs);

  // Another process would do this: the newest checkpoint, and one epoch more.
  Network other;
  ms::Model again(other, loss, opt, options);
  ms::ModelCheckpoint loader(folder.string());
  const auto position = loader.load(other, again.optimizer());
  const Tensor x = full({1, 784}, 0.1);
  const bool same = again.predict(x).to_floats() == model.predict(x).to_floats();
  Loader more(noisy_prototypes(1000), {.batch = 50});
  again.train(1, more);
  const double later = again.eval(test_dataset).at("accuracy");
  fmt::print("accuracy {:.3f}, {:.3f} behind another epoch\n", accuracy, later);
  std::filesystem::remove_all(folder);
  return position && same && stop.epochs < 20 && accuracy > 0.95 && later > 0.95 ? 0 : 1;
}
