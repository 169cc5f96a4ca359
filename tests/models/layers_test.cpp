// Layers: names and shapes of their parameters, how they start, train and evaluation mode,
// messages.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "frontend/eager.h"
#include "frontend/random.h"
#include "models/gpt2.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/conv_transpose2d.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/norm.h"
#include "nn/sequential.h"
#include "ops/activation.h"
#include "types/tolerance.h"

namespace aloft::nn {
namespace {

struct Model : Module {
  Model() {
    static const bool once = (use_device(cpu_device()), true);
    (void)once;
  }
};

HostRead<float> values(const VariablePtr& v) { return v->buffer->read<float>(); }

TEST(Layers, ParametersHavePyTorchsNamesAndShapes) {
  Model m;
  Linear up(m, "up", 5, 3);
  Conv2d conv(m, "conv", 4, 6, 3, {.groups = 2, .bias = false});
  ConvTranspose2d larger(m, "larger", 4, 6, 3, {.groups = 2});
  LayerNorm norm(m, "norm", 7);
  std::vector<std::string> names;
  for (const VariablePtr& p : m.parameters()) names.push_back(p->name.str() + p->type.shape.str());
  EXPECT_EQ(names, (std::vector<std::string>{"up.weight[3,5]", "up.bias[3]", "conv.weight[6,2,3,3]",
                                             "larger.weight[4,3,3,3]", "larger.bias[6]",
                                             "norm.weight[7]", "norm.bias[7]"}));
  const float bound = 1 / std::sqrt(3.0f * 3 * 3);  // of both: by the weight's second extent, there
  for (const VariablePtr& p : {larger.weight, larger.bias})
    for (const float v : p->to_floats()) EXPECT_LE(std::abs(v), bound);
  EXPECT_TRUE(norm.weight->is_norm);
  EXPECT_FALSE(up.weight->is_norm);
}

TEST(Layers, StartDependsOnSeedAndNameAlone) {
  Model a, b, c;
  manual_seed(3);
  Linear first(a, "x", 8, 8);
  Linear other(b, "other", 2, 2), second(b, "x", 8, 8);
  manual_seed(4);
  Linear third(c, "x", 8, 8);
  EXPECT_TRUE(std::ranges::equal(values(first.weight).first(64), values(second.weight).first(64)));
  EXPECT_FALSE(std::ranges::equal(values(first.weight).first(64), values(third.weight).first(64)));
  for (int i = 0; i < 64; ++i) EXPECT_LE(std::abs(values(first.weight)[i]), 1 / std::sqrt(8.0f));
}

TEST(Layers, NormalStartHasItsDeviation) {
  manual_seed(1);
  Model m;
  Embedding table(m, "table", 200, 101, {Init::normal(0.02)});
  double sum = 0, squares = 0;
  const int n = 200 * 101;
  for (int i = 0; i < n; ++i) {
    sum += values(table.weight)[i];
    squares += double(values(table.weight)[i]) * values(table.weight)[i];
  }
  // Five deviations of the mean, and of the deviation, of n numbers.
  EXPECT_NEAR(sum / n, 0, 5 * 0.02 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 5 * 0.02 / std::sqrt(2 * n));
  EXPECT_NEAR(Init::gpt2_residual(12).scale, 0.02 / std::sqrt(24.0), 1e-9);
}

TEST(Layers, DropoutOnlyInTraining) {
  Model m;
  Dropout drop(m, "drop", 0.5);
  manual_seed(1);
  const std::vector<float> ones(1000, 1.0f);
  const Tensor x = from_floats(ones, {10, 100});
  int zeros = 0;
  for (float v : drop(x).to_floats()) {
    EXPECT_TRUE(v == 0 || v == 2);
    zeros += v == 0;
  }
  EXPECT_NEAR(zeros, 500, 5 * std::sqrt(250));  // five deviations of 1,000 throws
  m.eval();
  EXPECT_EQ(drop(x).to_floats(), ones);
  EXPECT_THROW(Dropout(m, "all", 1.0), UserError);
}

// Seeding is the thread's own affair: one that seeds must not make another's draws come again.
TEST(Layers, ASeedOnAnotherThreadChangesNoDraw) {
  Model m;
  Dropout drop(m, "drop", 0.5);
  const Tensor x = from_floats(std::vector<float>(1000, 1.0f), {10, 100});
  const auto draws = [&](bool disturbed) {
    manual_seed(1);
    std::vector<std::vector<float>> drawn;
    for (int i = 0; i < 2; ++i) {
      drawn.push_back(drop(x).to_floats());
      if (disturbed) std::thread([] { manual_seed(1); }).join();
    }
    return drawn;
  };
  const auto alone = draws(false);
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_EQ(draws(true), alone);
}

TEST(Layers, BatchNormKeepsRunningStatistics) {
  Model m;
  BatchNorm2d norm(m, "norm", 2, {.momentum = 0.5});
  // Channel 0 holds 1, 3 (mean 2, unbiased variance 2), channel 1 holds -1, -1.
  const Tensor x = from_floats({1, -1, 3, -1}, {2, 2, 1, 1});
  norm(x);
  EXPECT_FLOAT_EQ(values(norm.running_mean)[0], 1);
  EXPECT_FLOAT_EQ(values(norm.running_mean)[1], -0.5);
  EXPECT_FLOAT_EQ(values(norm.running_var)[0], 1.5);
  EXPECT_FLOAT_EQ(values(norm.running_var)[1], 0.5);
  m.eval();
  const std::vector<float> y = norm(x).to_floats();
  const double third = 2 / std::sqrt(1.5 + 1e-5);
  EXPECT_NEAR(y[0], 0, allowed_error(DType::F32, 2, 0, 1));
  EXPECT_NEAR(y[2], third, allowed_error(DType::F32, 1, third));
  EXPECT_FLOAT_EQ(values(norm.running_mean)[0], 1);
  EXPECT_EQ(m.buffers().size(), 2u);
}

TEST(Layers, SequentialCountsItsStages) {
  Model m;
  Sequential net(m, "net");
  net.add<Linear>(4, 8).add(relu).add<Linear>(8, 2, LinearOptions{.bias = false});
  std::vector<std::string> names;
  for (const VariablePtr& p : m.parameters()) names.push_back(p->name.str());
  EXPECT_EQ(names, (std::vector<std::string>{"net.0.weight", "net.0.bias", "net.2.weight"}));
  EXPECT_EQ(net(from_floats(std::vector<float>(12), {3, 4})).shape(), (Shape{3, 2}));
}

TEST(Layers, ALayerThatIsGoneLeavesItsNameAndItsParameters) {
  Model m;
  { Linear first(m, "up", 4, 8); }
  EXPECT_TRUE(m.parameters().empty());
  EXPECT_THROW(GroupNorm(m, "up", 3, 8), UserError);  // its constructor fails half-way
  const Linear second(m, "up", 4, 2);
  EXPECT_EQ(m.parameters().size(), 2u);
}

TEST(Layers, MistakesNameTheLayerAndTheUsersLine) {
  Model m;
  Linear up(m, "up", 4, 8);
  EXPECT_THROW(Linear(m, "none", 0, 8), UserError);
  EXPECT_THROW(GroupNorm(m, "group", 3, 8), UserError);
  EXPECT_THROW(Linear(m, "up", 1, 1), UserError);  // the name is taken
  const Tensor x = from_floats(std::vector<float>(10), {2, 5});
  const int line = __LINE__ + 2;
  try {
    up(x);
    FAIL() << "the shapes do not fit";
  } catch (const UserError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("up"), std::string::npos) << text;
    EXPECT_NE(text.find("layers_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  }
}

TEST(Layers, GptHasTheNamesOfHuggingFace) {
  models::Gpt2Config c;
  c.layers = 1;
  c.heads = 1;
  c.dim = 4;
  c.vocab = 5;
  c.context = 3;
  c.bias = false;
  models::Gpt2 bare(c);
  std::vector<std::string> names;
  for (const VariablePtr& p : bare.parameters()) names.push_back(p->name.str());
  const std::vector<std::string> expected = {"wte.weight",
                                             "wpe.weight",
                                             "h.0.ln_1.weight",
                                             "h.0.attn.c_attn.weight",
                                             "h.0.attn.c_proj.weight",
                                             "h.0.ln_2.weight",
                                             "h.0.mlp.c_fc.weight",
                                             "h.0.mlp.c_proj.weight",
                                             "ln_f.weight"};
  EXPECT_EQ(names, expected);
}

}  // namespace
}  // namespace aloft::nn
