// A convolutional network with batch norm, pooling and dropout: the same bits eagerly and compiled,
// running statistics included; an evaluation program beside the training step sees its weights.
#include <gtest/gtest.h>

#include <cctype>

#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/conv_transpose2d.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/pool2d.h"
#include "ops/activation.h"
#include "ops/cross_entropy.h"
#include "ops/reshape.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

struct ConvNet : nn::Module {
  nn::Conv2d conv{*this, "conv", 1, 6, 3, {.padding = 1}};
  nn::BatchNorm2d norm{*this, "norm", 6};
  nn::MaxPool2d pool{*this, "pool", 2};
  nn::Dropout drop{*this, "drop", 0.1};
  nn::Linear head{*this, "head", 6 * 3 * 3, 4};
  Tensor operator()(const Tensor& x) { return head(drop(flatten(pool(relu(norm(conv(x)))), 1))); }
};

// A bright quadrant among noise; its number is the label. The last of four batches is short.
Batch images(int step) {
  const std::int64_t rows = step % 4 == 3 ? 5 : 12;
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto label = static_cast<std::int32_t>((r * 5 + step * 3) % 4);
    for (int i = 0; i < 36; ++i) {
      const int quadrant = (i / 6 / 3) * 2 + i % 6 / 3;
      const float noise = static_cast<float>((i * 31 + r * 17 + step * 7) % 23) / 23;
      x.push_back(noise + (quadrant == label ? 1.0f : 0.0f));
    }
    labels.push_back(label);
  }
  return {from_floats(x, {rows, 1, 6, 6}), from_ints(labels, {rows})};
}

const auto kLoss = [](auto& net, const Tensor& x, const Tensor& label) {
  return cross_entropy(net(x), label);
};

class Conv : public testing::TestWithParam<const char*> {};

TEST_P(Conv, EagerEqualsCompiledAndTheLossFalls) {
  TrainOptions o{Mode::Eager, GetParam(), 30, 2, 1, optim::Momentum{.lr = 0.05}};
  const Outcome eager = train<ConvNet>(o, images, kLoss);
  o.mode = Mode::Compiled;
  const Outcome compiled = train<ConvNet>(o, images, kLoss);
  EXPECT_EQ(eager.losses, compiled.losses);
  EXPECT_EQ(differing(eager, compiled), std::vector<std::string>());
  EXPECT_TRUE(compiled.state.contains("norm.running_mean"));
  EXPECT_LT(compiled.last(), 0.5 * compiled.first());
}

// Smaller, and as large again.
struct Enlarging : nn::Module {
  nn::Conv2d down{*this, "down", 1, 6, 3, {.stride = 2, .padding = 1}};
  nn::ConvTranspose2d up{
      *this, "up", 6, 4, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2}};
  nn::Linear head{*this, "head", 4 * 6 * 6, 4};
  Tensor operator()(const Tensor& x) { return head(flatten(relu(up(relu(down(x)))), 1)); }
};

TEST_P(Conv, TransposedEagerEqualsCompiledAndTheLossFalls) {
  TrainOptions o{Mode::Eager, GetParam(), 30, 2, 1, optim::Momentum{.lr = 0.05}};
  const Outcome eager = train<Enlarging>(o, images, kLoss);
  o.mode = Mode::Compiled;
  const Outcome compiled = train<Enlarging>(o, images, kLoss);
  EXPECT_EQ(eager.losses, compiled.losses);
  EXPECT_EQ(differing(eager, compiled), std::vector<std::string>());
  EXPECT_LT(compiled.last(), compiled.first());
}

INSTANTIATE_TEST_SUITE_P(All, Conv,
                         testing::Values("O0", "O1:bf16", "O1:fp16", "O2:bf16", "O2:fp16",
                                         "O3:bf16", "O2:bf16 backward=f16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST(TwoPrograms, ShareTheirVariables) {
  use_cpu();
  eager().clear_tape();
  manual_seed(1);
  ConvNet model;
  auto [net, opt] = amp::initialize(model, optim::Momentum{.lr = 0.05}, "O2:bf16");
  auto step = compile([&net = net, &opt = opt](const Tensor& x, const Tensor& label) {
    return minimize(cross_entropy(net(x), label), opt);
  });
  auto evaluate = compile([&net = net](const Tensor& x) { return net(x); });
  const Batch batch = images(0);
  for (int i = 0; i < 8; ++i) {
    model.train();
    step(batch.x, batch.label);
    model.eval();
    const std::vector<float> compiled = evaluate(batch.x).to_floats();
    const NoGrad no_grad;
    EXPECT_EQ(net(batch.x).to_floats(), compiled) << i;
  }
}

}  // namespace
}  // namespace aloft::e2e
