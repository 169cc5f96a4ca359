// The means that a run keeps of its weights, as others use them: a file beside the weights in each
// checkpoint, and in the weights' place where a saved model is opened.
#include <map>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoints.h"
#include "e2e/refusal.h"
#include "e2e/small_run.h"
#include "e2e/training.h"
#include "files/safetensors.h"
#include "frontend/averaged_weights.h"
#include "infer/saved_model.h"
#include "models/state_dict.h"
#include "nn/batch_norm.h"
#include "nn/linear.h"
#include "nn/update_bn.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "optim/adamw.h"
#include "temporary_folder.h"

namespace aloft::e2e {
namespace {

constexpr const char* kFile = "average.safetensors";

using Values = std::map<std::string, std::vector<float>>;

Values weights_in(const Path& file) {
  const Safetensors all = Safetensors::open(file);
  Values values;
  for (const TensorView& t : all.tensors()) {
    EXPECT_EQ(t.type.dtype, DType::F32) << t.name;
    std::vector<float>& v = values[t.name];
    v.resize(static_cast<std::size_t>(t.type.shape.max_numel()));
    models::read_floats(t, 0, v);
  }
  return values;
}

Values weights_of(const nn::Module& model) {
  Values values;
  for (const VariablePtr& v : models::state_variables(model))
    values[v->name.str()] = v->to_floats();
  return values;
}

class AveragesOfARun : public SmallRun, public testing::WithParamInterface<const char*> {};

TEST_P(AveragesOfARun, LieBesideTheWeightsAsTheyAreOpened) {
  const std::vector<std::string> set = {std::string("optimizer.average=") + GetParam()};
  run("run", set);
  for (const char* step : {"step-000004", "step-000012"}) {
    const Values live = weights_in(checkpoint("run", step) / "model.safetensors"),
                 average = weights_in(checkpoint("run", step) / kFile);
    EXPECT_EQ(average, weights_of(*open_saved_model(checkpoint("run", step), "", true).model));
    EXPECT_EQ(live, weights_of(*open_saved_model(checkpoint("run", step)).model));
    for (const auto& [name, weights] : live) EXPECT_NE(average.at(name), weights) << name;
  }
  run("plain");
  EXPECT_FALSE(path_exists(checkpoint("plain", "step-000012") / kFile));
  EXPECT_EQ(code_of([&] { open_saved_model(folder_ / "plain", "", true); }), "E0830");
}

INSTANTIATE_TEST_SUITE_P(Kinds, AveragesOfARun, testing::Values("ema", "swa"),
                         [](const auto& info) { return info.param; });

// The file is one of those whose hash the manifest has.
TEST_F(SmallRun, ADamagedFileOfAveragesMakesTheCheckpointOneThatIsPassedOver) {
  const std::vector<std::string> set = {"optimizer.average=ema"};
  run("run", set);
  const Path file = checkpoint("run", "step-000012") / kFile;
  std::string text = read_file(file, 1 << 26);
  text[text.size() / 2] ^= 1;
  folder_.put(file, text);
  EXPECT_EQ(run("run", set, true).steps, 4);
}

struct Net : nn::Module {
  nn::Linear in{*this, "in", 4, 8};
  nn::BatchNorm2d norm{*this, "norm", 8};
  Tensor operator()(const Tensor& x) { return mean(norm(reshape(in(x), {6, 8, 1, 1})), {}); }
};

// Buffers have no means, and what is frozen has none: they stand there as in the weights' file, so
// that it is a whole model.
TEST(AveragesOfALoop, AreAWholeModelsState) {
  use_cpu();
  const TemporaryFolder folder;
  Net model;
  model.in.bias->requires_grad = false;
  auto [net, opt] = amp::initialize(
      model, optim::AdamW{.lr = 0.1, .average = {.kind = AverageKind::Ema, .decay = 0.5}},
      "O2:bf16");
  Checkpoints checkpoints(folder.path());
  const Path before = checkpoints.save({0, 0}, model, opt);
  EXPECT_EQ(weights_in(before / kFile), weights_in(before / "model.safetensors"));
  for (int step = 0; step < 3; ++step) {
    const Tensor x = from_floats(std::vector<float>(24, 0.5f + static_cast<float>(step)), {6, 4});
    minimize(net(x), opt);
  }
  const Path saved = checkpoints.save({3, 3}, model, opt);
  const Values live = weights_in(saved / "model.safetensors"), average = weights_in(saved / kFile);
  EXPECT_EQ(average.at("norm.running_mean"), live.at("norm.running_mean"));
  EXPECT_EQ(average.at("in.bias"), live.at("in.bias"));
  EXPECT_NE(average.at("norm.bias"), live.at("norm.bias"));
  Net other;
  EXPECT_TRUE(models::load_state(Safetensors::open(saved / kFile), other).is_complete());
  for (std::size_t i = 0; i < opt.parameters().size(); ++i)
    EXPECT_EQ(average.at(opt.parameters()[i]->name.str()), opt.average(i)->to_floats());
}

// The values of each batch are {0, 2, 4, 6} above its number times 10.
struct Normed : nn::Module {
  nn::BatchNorm2d norm{*this, "norm", 1};
  Tensor operator()(const Tensor& x) const { return mean(norm(x), {}); }
};
using Pairs = std::vector<std::pair<Tensor, Tensor>>;
Pairs batches(int count) {
  Pairs all;
  for (int k = 0; k < count; ++k) {
    const float first = 10 * static_cast<float>(k);
    const Tensor x = from_floats({first, first + 2, first + 4, first + 6}, {2, 1, 1, 2});
    all.emplace_back(x, Tensor());
  }
  return all;
}

TEST(StatisticsOfAverages, AreThePlainMeansOfAPass) {
  use_cpu();
  Normed model;
  auto [net, opt] = amp::initialize(
      model, optim::AdamW{.lr = 0.1, .average = {.kind = AverageKind::Swa}}, "O1:bf16");
  for (const auto& [x, y] : batches(2)) minimize(net(x), opt);
  const std::vector<float> mean_before = model.norm.running_mean->to_floats(),
                           var_before = model.norm.running_var->to_floats(),
                           bias = model.norm.bias->to_floats();
  const auto expect_before = [&] {
    EXPECT_EQ(model.norm.running_mean->to_floats(), mean_before);
    EXPECT_EQ(model.norm.running_var->to_floats(), var_before);
    EXPECT_EQ(model.norm.bias->to_floats(), bias);
  };
  model.eval();
  {
    const AveragedWeights means(opt, model);
    Pairs data = batches(3), none;
    EXPECT_EQ(code_of([&, &net = net] { update_bn(none, net); }), "E0530");
    EXPECT_EQ(model.norm.running_var->to_floats(), var_before);
    update_bn(data, net);
    EXPECT_NEAR(model.norm.running_mean->to_floats()[0], 13, 1e-5);
    EXPECT_NEAR(model.norm.running_var->to_floats()[0], 20.0 / 3, 1e-5);  // unbiased, as there
    EXPECT_FALSE(model.is_training());
    std::vector<Tensor> alone = {data[0].first};
    update_bn(alone, model);
    EXPECT_NEAR(model.norm.running_mean->to_floats()[0], 3, 1e-5);
    // Of a batch that the model refuses nothing is taken.
    data.emplace_back(from_floats({1}, {1}), Tensor());
    EXPECT_NE(code_of([&, &net = net] { update_bn(data, net); }), "");
    EXPECT_NEAR(model.norm.running_mean->to_floats()[0], 3, 1e-5);
    EXPECT_NE(model.norm.bias->to_floats(), bias);
  }
  expect_before();
}

}  // namespace
}  // namespace aloft::e2e
