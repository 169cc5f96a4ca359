// MindSpore's Model and build_train_network: the bits of a loop that is written by hand, what
// callbacks hear, what eval() measures.
#include <gtest/gtest.h>

#include <cmath>

#include "aloft/loader.h"
#include "data/array_loader.h"
#include "e2e/refusal.h"
#include "e2e/training.h"
#include "mindspore/context.h"
#include "mindspore/losses.h"
#include "mindspore/model.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "optim/momentum.h"
#include "temporary_folder.h"

namespace aloft::e2e {
namespace {

constexpr int kFeatures = 6, kClasses = 3, kSamples = 40;

struct Network : nn::Module {
  nn::Linear up{*this, "up", kFeatures, 16};
  nn::Linear down{*this, "down", 16, kClasses};
  Tensor operator()(const Tensor& x) const { return down(relu(up(x))); }
};

ArrayData samples() {
  ArrayData data;
  data.features = kFeatures;
  std::uint32_t bits = 1;
  for (int i = 0; i < kSamples; ++i) {
    const int label = i % kClasses;
    for (int f = 0; f < kFeatures; ++f) {
      bits = bits * 1664525 + 1013904223;
      data.values.push_back(static_cast<float>(bits >> 8) * 0x1p-24f + (f == label ? 1.0f : 0.0f));
    }
    data.labels.push_back(label);
  }
  return data;
}

Loader loader() { return Loader(samples(), {.batch = 8, .seed = 2}); }

const ms::SoftmaxCrossEntropyWithLogits kLoss{.sparse = true, .reduction = "mean"};
const OptimizerSpec kMomentum = optim::Momentum{.lr = 0.05, .momentum = 0.9};

// The mode of the block; the process begins in pynative mode.
struct InMode {
  explicit InMode(ms::Mode mode) { ms::set_context({.mode = mode}); }
  ~InMode() { ms::set_context({.mode = ms::PYNATIVE_MODE}); }
};

// Everything that a callback hears, in order.
struct Heard : ms::Callback {
  std::string* text;
  std::int64_t stop_at = -1;
  explicit Heard(std::string& into, std::int64_t stop = -1) : text(&into), stop_at(stop) {}
  void on_train_begin(ms::RunContext&) override { *text += "["; }
  void on_train_epoch_begin(ms::RunContext& r) override {
    *text += std::to_string(r.cur_epoch_num) + "(";
  }
  void on_train_step_begin(ms::RunContext&) override { *text += "<"; }
  void on_train_step_end(ms::RunContext& r) override {
    EXPECT_TRUE(std::isfinite(r.loss()));
    *text += std::to_string(r.step_in_epoch) + ">";
    if (r.cur_step_num == stop_at) r.request_stop();
  }
  void on_train_epoch_end(ms::RunContext&) override { *text += ")"; }
  void on_train_end(ms::RunContext&) override { *text += "]"; }
  void on_eval_begin(ms::RunContext&) override { *text += "{"; }
  void on_eval_step_end(ms::RunContext&) override { *text += "."; }
  void on_eval_end(ms::RunContext& r) override { *text += std::to_string(r.metrics.size()) + "}"; }
};

TEST(MindsporeModel, TrainsAsALoopThatIsWrittenByHand) {
  use_cpu();
  for (const ms::Mode mode : {ms::PYNATIVE_MODE, ms::GRAPH_MODE}) {
    const InMode in(mode);
    std::map<std::string, std::string> states[2];
    for (const bool by_hand : {false, true}) {
      manual_seed(1);
      Network network;
      Loader data = loader();
      if (by_hand) {
        const auto net = amp::auto_mixed_precision(network, "O2");
        Optimizer opt(kMomentum, network.parameters(), amp::DynamicLossScaleManager().rule());
        auto step = compile([&](const Tensor& x, const Tensor& label) {
          return minimize(cross_entropy(net(x), label), opt);
        });
        for (int epoch = 0; epoch < 8; ++epoch)
          for (auto [x, label] : data) step(x, label);
        states[1] = state_of(network, opt);
        EXPECT_GT(opt.skipped->buffer->read<std::int64_t>()[0], 0);  // 2^24 is too much for f16
        EXPECT_GT(opt.applied->buffer->read<std::int64_t>()[0], 20);
      } else {
        ms::Model model(network, kLoss, kMomentum, {.amp_level = "O2"});
        model.train(8, data);
        states[0] = state_of(network, model.optimizer());
      }
    }
    EXPECT_EQ(states[0], states[1]);
  }
}

TEST(MindsporeModel, ALossIsGivenOutputsInF32) {
  use_cpu();
  for (const char* level : {"O0", "O1", "O2", "O3", "auto"}) {
    Network network;
    std::vector<DType> seen;
    const auto loss = [&](const Tensor& y, const Tensor& label) {
      seen.push_back(y.dtype());
      return cross_entropy(y, label);
    };
    ms::Model model(network, loss, kMomentum, {.metrics = {"loss"}, .amp_level = level});
    Loader data(samples(), {.batch = kSamples});
    model.train(1, data);
    model.eval(data);
    EXPECT_EQ(seen, (std::vector{DType::F32, DType::F32})) << level;
    EXPECT_EQ(model.predict(from_floats(std::vector<float>(kFeatures), {1, kFeatures})).dtype(),
              DType::F32);
  }
}

TEST(MindsporeModel, CallbacksHearEpochsAndSteps) {
  use_cpu();
  const InMode in(ms::GRAPH_MODE);
  Network network;
  ms::Model model(network, kLoss, kMomentum, {.metrics = {"accuracy", "loss"}});
  const auto heard = [&](auto... how) {
    std::string text;
    Loader data = loader();
    Heard listener(text);
    model.train(2, data, {std::ref(listener)}, how...);
    return text;
  };
  EXPECT_EQ(heard(), "[1(<1><2><3><4><5>)2(<1><2><3><4><5>)]");
  EXPECT_EQ(heard(true), "[1(5>)2(5>)]");     // nobody looks at single steps
  EXPECT_EQ(heard(true, 3), "[1(3>)2(3>)]");  // an epoch of three steps
  EXPECT_EQ(heard(true, 7), "[1(7>)2(7>)]");  // of more than the data set has
  EXPECT_EQ(heard(false, -1, 1), "[2(<1><2><3><4><5>)]");
  std::string text;
  Loader data = loader();
  model.train(5, data, {Heard(text, 7), ms::LossMonitor(0)});
  EXPECT_EQ(text, "[1(<1><2><3><4><5>)2(<1><2>)]");
  text.clear();
  Loader rest = loader();
  model.eval(rest, {Heard(text)});
  EXPECT_EQ(text, "{.....2}");
}

// The usual callback: an evaluation behind each epoch, of the model that trains.
struct Evaluates : ms::Callback {
  ms::Model* model;
  std::vector<double>* into;
  Evaluates(ms::Model& m, std::vector<double>& values) : model(&m), into(&values) {}
  void on_train_epoch_end(ms::RunContext&) override {
    Loader data = loader();
    into->push_back(model->eval(data).at("loss"));
  }
};

TEST(MindsporeModel, EvaluatesBetweenEpochsAndChangesNothing) {
  use_cpu();
  for (const ms::Mode mode : {ms::PYNATIVE_MODE, ms::GRAPH_MODE}) {
    const InMode in(mode);
    std::map<std::string, std::string> states[2];
    for (const bool evaluates : {false, true}) {
      manual_seed(1);
      Network network;
      ms::Model model(network, kLoss, kMomentum, {.metrics = {"loss"}, .amp_level = "O1"});
      Loader data = loader();
      std::vector<double> values;
      if (evaluates) {
        model.train(6, data, {Evaluates(model, values)});
        EXPECT_EQ(values.size(), 6u);
        EXPECT_LT(values.back(), values.front());
      } else {
        model.train(2, data);
        model.train(4, data);  // goes on
      }
      EXPECT_TRUE(network.is_training());
      states[evaluates] = state_of(network, model.optimizer());
    }
    EXPECT_EQ(states[0], states[1]);
  }
}

struct Images : nn::Module {
  nn::Conv2d conv{*this, "conv", 1, 4, 3, {.padding = 1}};
  nn::BatchNorm2d norm{*this, "norm", 4};
  nn::Linear down{*this, "down", 4 * 6, kClasses};
  Tensor operator()(const Tensor& x) const { return down(flatten(relu(norm(conv(x))), 1)); }
};

TEST(MindsporeModel, TrainsBatchNormsAtEveryLevel) {
  use_cpu();
  for (const char* level : {"O0", "O1", "O2", "O3", "auto"}) {
    std::map<std::string, std::string> states[2];
    for (const ms::Mode mode : {ms::PYNATIVE_MODE, ms::GRAPH_MODE}) {
      const InMode in(mode);
      manual_seed(1);
      Images network;
      ms::Model model(network, kLoss, kMomentum,
                      {.metrics = {"accuracy"},
                       .amp_level = level,
                       .loss_scale_manager = amp::FixedLossScaleManager(1024)});
      EXPECT_EQ(model.optimizer().scale->to_floats()[0], 1024);
      Loader data(samples(), {.batch = 8, .seed = 2}, {1, 2, 3});
      model.train(10, data);
      EXPECT_GT(model.eval(data).at("accuracy"), 0.8) << level;
      states[mode] = state_of(network, model.optimizer());
    }
    EXPECT_EQ(states[0], states[1]) << level;
  }
}

TEST(MindsporeModel, PynativeModeHearsEveryStep) {
  use_cpu();
  Network network;
  ms::Model model(network, kLoss, kMomentum);
  std::string text;
  Loader data = loader();
  model.train(1, data, {Heard(text)}, true);
  EXPECT_EQ(text, "[1(<1><2><3><4><5>)]");
}

// Measured on the host, row by row.
TEST(MindsporeModel, MeasuresOverAllBatches) {
  use_cpu();
  manual_seed(4);
  Network network;
  for (const ms::Mode mode : {ms::PYNATIVE_MODE, ms::GRAPH_MODE}) {
    const InMode in(mode);
    ms::Model model(network, kLoss,
                    {.metrics = {"accuracy", "loss", "top_5_accuracy", "top_1_accuracy"}});
    Loader data(samples(), {.batch = 16, .shuffle = false});
    const std::map<std::string, double> got = model.eval(data);
    EXPECT_TRUE(network.is_training());
    int right = 0;
    double loss = 0;
    Loader again(samples(), {.batch = 16, .shuffle = false});
    for (auto [x, label] : again) {
      const std::vector<double> y = model.predict(x).to_vector(), t = label.to_vector();
      loss += cross_entropy(
                  from_floats({y.begin(), y.end()}, {static_cast<int>(t.size()), kClasses}), label)
                  .item();
      for (std::size_t i = 0; i < t.size(); ++i) {
        const auto row = y.begin() + static_cast<std::ptrdiff_t>(i * kClasses);
        right += std::max_element(row, row + kClasses) - row == static_cast<std::ptrdiff_t>(t[i]);
      }
    }
    EXPECT_DOUBLE_EQ(got.at("accuracy"), right / static_cast<double>(kSamples));
    EXPECT_EQ(got.at("top_1_accuracy"), got.at("accuracy"));
    EXPECT_EQ(got.at("top_5_accuracy"), 1);       // of three classes
    EXPECT_NEAR(got.at("loss"), loss / 3, 1e-6);  // of batches of 16, 16 and 8
  }
}

TEST(MindsporeModel, MeasuresDistances) {
  use_cpu();
  const auto mae = ms::get_metric_fn("mae"), mse = ms::get_metric_fn("mse");
  for (const auto* m : {&mae, &mse}) {
    (*m)->clear();
    (*m)->update({{}, from_floats({1, 2, 3, 4}, {2, 2}), from_floats({0, 2, 5, 4}, {2, 2})});
    (*m)->update({{}, from_floats({1, 1}, {1, 2}), from_floats({1, -2}, {1, 2})});
  }
  EXPECT_DOUBLE_EQ(mae->eval(), 6.0 / 6);
  EXPECT_DOUBLE_EQ(mse->eval(), 14.0 / 6);
  mae->clear();
  EXPECT_EQ(code_of([&] { mae->eval(); }), "E0841");
}

// One of the program's own.
struct Rows : ms::Metric {
  double rows = 0;
  void clear() override { rows = 0; }
  void update(const ms::EvalBatch& b) override {
    rows += static_cast<double>(b.label.dim(0).max());
  }
  double eval() const override { return rows; }
};

TEST(MindsporeModel, MeasuresWithAMetricOfOnesOwn) {
  use_cpu();
  Network network;
  ms::Model model(network, kLoss, {.metrics = {{"rows", std::make_shared<Rows>()}}});
  Loader data = loader();
  EXPECT_EQ(model.eval(data).at("rows"), kSamples);
  EXPECT_EQ(model.eval(data).at("rows"), kSamples);
}

TEST(MindsporeModel, GoesOnFromACheckpoint) {
  use_cpu();
  const InMode in(ms::GRAPH_MODE);
  const TemporaryFolder folder;
  std::map<std::string, std::string> states[2];
  {
    manual_seed(1);
    Network network;
    ms::Model model(network, kLoss, kMomentum, {.amp_level = "O2"});
    Loader data = loader();
    model.train(4, data);
    states[0] = state_of(network, model.optimizer());
  }
  for (const int part : {0, 1}) {
    manual_seed(1);
    Network network;
    ms::Model model(network, kLoss, kMomentum, {.amp_level = "O2"});
    Loader data = loader();
    ms::ModelCheckpoint saver(folder.path() / "checkpoints", {.save_checkpoint_steps = 3});
    const auto at = saver.load(network, model.optimizer());
    EXPECT_EQ(at.has_value(), part == 1);
    if (at) {
      EXPECT_EQ(at->step, 10);
      data.seek(at->data_position);
    }
    model.train(part == 0 ? 2 : 4, data, {std::ref(saver)}, false, -1, part == 0 ? 0 : 2);
    states[1] = state_of(network, model.optimizer());
  }
  EXPECT_EQ(states[0], states[1]);
}

TEST(MindsporeTrainNetwork, TakesScalesAndNormsFromTheLevel) {
  using amp::plan_train_network;
  const auto is = [](const amp::TrainNetworkPlan& plan, std::string_view level, float scale) {
    EXPECT_EQ(plan.level, level);
    const bool scales = plan.scaler.kind != scalar::ScalerKind::None;
    EXPECT_EQ(scales ? plan.scaler.init : 0, scale);
  };
  is(plan_train_network("O0", {}), "O0", 0);
  is(plan_train_network("O1", {}), "O1", 0);
  is(plan_train_network("O2", {}), "O2", 16777216);
  is(plan_train_network("O3", {}), "O3", 0);
  is(plan_train_network("auto", {}), "auto", 0);
  is(plan_train_network("O2", {.keep_batchnorm_fp32 = false}), "O3", 16777216);
  is(plan_train_network("O3", {.keep_batchnorm_fp32 = true}), "O2", 0);
  is(plan_train_network("O2", {.cast_model_type = DType::F32}), "O0", 16777216);
  is(plan_train_network("O0", {.cast_model_type = DType::F16}), "O3", 0);
  is(plan_train_network("O2", {.loss_scale_manager = nullptr}), "O2", 0);
  is(plan_train_network("O3", {.loss_scale_manager = amp::FixedLossScaleManager(1024)}), "O3",
     1024);
  EXPECT_EQ(code_of([] { plan_train_network("O2", {.cast_model_type = DType::BF16}); }), "E0840");
}

TEST(MindsporeTrainNetwork, TakesANetworkThatIsMixedAlready) {
  use_cpu();
  Network network;
  auto net = amp::custom_mixed_precision(network, {.black_list = amp::List{}}, DType::BF16);
  EXPECT_EQ(code_of([&] { amp::build_train_network(net, kMomentum, kLoss, "O2"); }), "E0805");
  amp::TrainNetwork train = amp::build_train_network(net, kMomentum, kLoss);
  Loader data = loader();
  std::vector<double> losses;
  for (int epoch = 0; epoch < 10; ++epoch)
    for (auto [x, label] : data) losses.push_back(train(x, label).loss());
  EXPECT_LT(losses.back(), losses.front() / 2);
}

// The network computes its loss itself.
struct WithLoss : nn::Module {
  Network inner;
  nn::Linear up{*this, "up", kFeatures, kClasses};
  Tensor operator()(const Tensor& x, const Tensor& label) const {
    return cross_entropy(up(x), label);
  }
};

TEST(MindsporeModel, TakesANetworkThatGivesItsLoss) {
  use_cpu();
  WithLoss network;
  ms::Model model(network, nullptr, kMomentum, {.metrics = {"loss"}, .amp_level = "O2"});
  Loader data = loader();
  const double before = model.eval(data).at("loss");
  model.train(12, data);
  EXPECT_LT(model.eval(data).at("loss"), before / 2);
  EXPECT_EQ(code_of([&] { model.predict(from_floats({1}, {1})); }), "E0841");
}

TEST(MindsporeModel, RefusesWhatItCannotDo) {
  use_cpu();
  Network network;
  Loader data = loader();
  ms::Model judge(network, kLoss);
  EXPECT_EQ(code_of([&] { judge.eval(data); }), "E0841");
  EXPECT_EQ(code_of([&] { judge.train(1, data); }), "E0841");
  expect_words(refusal([&] { ms::Model(network, kLoss, {.metrics = {"acuracy"}}); }),
               {"E0841", "acuracy", "top_5_accuracy"});
  EXPECT_EQ(code_of([&] { ms::Model(network, kLoss, {.amp_level = "O2"}); }), "E0841");
  ms::Model model(network, kLoss, kMomentum, {.metrics = {"loss"}});
  std::vector<std::pair<Tensor, Tensor>> nothing;
  EXPECT_EQ(code_of([&] { model.train(1, nothing); }), "E0841");
  EXPECT_EQ(code_of([&] { model.eval(nothing); }), "E0841");
  EXPECT_EQ(code_of([&] { model.train(-1, data); }), "E0841");
  EXPECT_EQ(code_of([&] { ms::LossMonitor(-1); }), "E0841");
  EXPECT_EQ(code_of([&] { ms::RunContext().loss(); }), "E0841");
  EXPECT_FALSE(network.policy());
}

// Each with its own optimizer.
TEST(MindsporeModel, TwoModelsOverOneNetworkTrainTheSameWeights) {
  use_cpu();
  const OptimizerSpec other = optim::Momentum{.lr = 0.01};
  for (const ms::Mode mode : {ms::PYNATIVE_MODE, ms::GRAPH_MODE}) {
    const InMode in(mode);
    std::map<std::string, std::string> states[2];
    for (const bool by_hand : {false, true}) {
      manual_seed(1);
      Network network;
      Loader data = loader();
      if (by_hand) {
        Optimizer one(kMomentum, network.parameters(), scalar::no_scaler());
        Optimizer two(other, network.parameters(), scalar::no_scaler());
        for (Optimizer* opt : {&one, &two, &one})
          for (auto [x, label] : data) minimize(cross_entropy(network(x), label), *opt);
        states[1] = state_of(network, one);
      } else {
        ms::Model one(network, kLoss, kMomentum), two(network, kLoss, other);
        for (ms::Model* model : {&one, &two, &one}) model->train(1, data);
        states[0] = state_of(network, one.optimizer());
      }
    }
    EXPECT_EQ(states[0], states[1]);
  }
}

// The network stays in f16 at O0, too.
TEST(MindsporeModel, ASecondOneHasTheLossScaleOfTheFirst) {
  use_cpu();
  for (const char* level : {"O2", "O3"}) {
    Network network;
    ms::ModelOptions first{.amp_level = level};
    if (level == std::string_view("O3")) first.loss_scale_manager = amp::FixedLossScaleManager(64);
    const scalar::ScalerRule rule =
        ms::Model(network, kLoss, kMomentum, first).optimizer().scaler();
    EXPECT_NE(rule.kind, scalar::ScalerKind::None);
    ms::Model second(network, kLoss, kMomentum);
    EXPECT_EQ(second.optimizer().scaler(), rule);
    EXPECT_EQ(amp::build_train_network(network, kMomentum, kLoss).optimizer().scaler(), rule);
    ms::Model without(network, kLoss, kMomentum, {.loss_scale_manager = nullptr});
    EXPECT_EQ(without.optimizer().scaler(), scalar::no_scaler());
    ms::Model with(network, kLoss, kMomentum,
                   {.loss_scale_manager = amp::FixedLossScaleManager(2)});
    EXPECT_EQ(with.optimizer().scaler().init, 2);
    Loader data = loader();
    second.train(1, data);
  }
  // A level alone has none, as there.
  Network network;
  amp::auto_mixed_precision(network, "O2");
  EXPECT_EQ(ms::Model(network, kLoss, kMomentum).optimizer().scaler(), scalar::no_scaler());
}

// A model without a loss scale would train in fp16 what another one has made of its network.
TEST(MindsporeModel, ANetworkHasOnePrecision) {
  use_cpu();
  Network network;
  Loader data = loader();
  ms::Model before(network, kLoss, kMomentum, {.metrics = {"loss"}});
  before.train(1, data);
  ms::Model low(network, kLoss, kMomentum, {.metrics = {"loss"}, .amp_level = "O2"});
  const std::vector<float> weights = network.up.weight->to_floats();
  const Tensor x = from_floats(std::vector<float>(kFeatures), {1, kFeatures});
  for (const std::string& said :
       {refusal([&] { before.train(1, data); }), refusal([&] { before.eval(data); }),
        refusal([&] { before.predict(x); })})
    expect_words(said, {"E0805", "O2", "make the model that gives it one first"});
  EXPECT_EQ(network.up.weight->to_floats(), weights);
  EXPECT_EQ(code_of([&] { ms::Model(network, kLoss, kMomentum, {.amp_level = "O1"}); }), "E0805");
  low.train(1, data);
  ms::Model behind(network, kLoss, {.metrics = {"loss"}});
  // Its loss is of outputs in f16; the other's casts them before.
  EXPECT_NEAR(behind.eval(data).at("loss"), low.eval(data).at("loss"), 1e-3);
}

TEST(MindsporeModel, ALossThatIsNotFiniteEndsTraining) {
  use_cpu();
  Network network;
  ms::Model model(
      network, [](const Tensor& y, const Tensor&) { return mean(y) * NAN; }, kMomentum);
  Loader data = loader();
  EXPECT_EQ(code_of([&] { model.train(1, data, {ms::LossMonitor(0)}); }), "E0822");
}

TEST(MindsporeContext, SaysHowStepsRun) {
  use_cpu();
  EXPECT_EQ(ms::get_mode(), ms::PYNATIVE_MODE);
  {
    const InMode in(ms::GRAPH_MODE);
    EXPECT_EQ(ms::get_mode(), ms::GRAPH_MODE);
    ms::set_context({});
    EXPECT_EQ(ms::get_mode(), ms::GRAPH_MODE);
  }
  EXPECT_EQ(code_of([] { ms::set_context({.mode = static_cast<ms::Mode>(2)}); }), "E0840");
  EXPECT_EQ(code_of([] { ms::set_context({.device_target = "abacus"}); }), "E0332");
  auto twice = ms::jit([](const Tensor& x) { return x + x; });
  EXPECT_EQ(twice(from_floats({3}, {1})).to_floats()[0], 6);
}

TEST(MindsporeLosses, AreThoseOfTheirNames) {
  use_cpu();
  const Tensor logits = from_floats({1, 2, 3, 0, 0, 1}, {2, 3}), label = from_ints({2, 0}, {2});
  const Tensor rows = from_floats({0, 0, 1, 1, 0, 0}, {2, 3});
  using Loss = ms::SoftmaxCrossEntropyWithLogits;
  const double whole = cross_entropy(logits, label).item();
  EXPECT_EQ((Loss{.sparse = true, .reduction = "mean"}(logits, label).item()), whole);
  EXPECT_NEAR((Loss{.sparse = true, .reduction = "sum"}(logits, label).item()), 2 * whole, 1e-6);
  EXPECT_NEAR((Loss{.reduction = "mean"}(logits, rows).item()), whole, 1e-6);
  EXPECT_NEAR((Loss{.reduction = "sum"}(logits, rows).item()), 2 * whole, 1e-6);
  const std::vector<double> each = Loss{.sparse = true}(logits, label).to_vector();
  EXPECT_NEAR(each[0] + each[1], 2 * whole, 1e-6);
  EXPECT_EQ((Loss{}(logits, rows).shape()), (Shape{2}));
  EXPECT_EQ(code_of([&] { Loss{.reduction = "least"}(logits, rows); }), "E0840");
}

}  // namespace
}  // namespace aloft::e2e
