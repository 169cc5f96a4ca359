// More threads than processors, and another number of threads than a plan was made for: the same
// bits as on one, in whole training steps whose ops are large enough to be shared out.
#include <gtest/gtest.h>

#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "models/gpt2.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/pool2d.h"
#include "ops/activation.h"
#include "ops/cross_entropy.h"
#include "ops/reshape.h"
#include "optim/adamw.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kBatch = 5, kLength = 72, kVocab = 1031;

models::Gpt2Config shape() {
  models::Gpt2Config c;
  c.layers = 2;
  c.heads = 4;
  c.dim = 96;
  c.vocab = kVocab;
  c.context = kLength;
  c.dropout = 0.1;
  return c;
}

struct Gpt : models::Gpt2 {
  Gpt() : Gpt2(shape()) {}
};

struct ConvNet : nn::Module {
  nn::Conv2d first{*this, "first", 3, 24, 3, {.padding = 1}};
  nn::BatchNorm2d norm{*this, "norm", 24};
  nn::MaxPool2d pool{*this, "pool", 2};
  nn::Conv2d second{*this, "second", 24, 40, 3, {.padding = 1}};
  nn::Dropout drop{*this, "drop", 0.1};
  nn::Linear head{*this, "head", 40 * 3 * 3, 10};
  Tensor operator()(const Tensor& x) {
    const Tensor y = relu(second(pool(relu(norm(first(x))))));
    return head(drop(flatten(pool(y), 1)));
  }
};

// A batch with every fourth short, so that symbols are below their bounds.
Batch tokens(int step) {
  const std::int64_t rows = step % 4 == 3 ? kBatch - 2 : kBatch;
  std::vector<std::int32_t> in, out;
  for (std::int64_t i = 0; i < rows * kLength; ++i) {
    in.push_back(static_cast<std::int32_t>((i * 7919 + step * 31) % kVocab));
    out.push_back(static_cast<std::int32_t>((i * 104729 + step) % kVocab));
  }
  return {from_ints(in, {rows, kLength}), from_ints(out, {rows, kLength})};
}

Batch images(int step) {
  constexpr std::int64_t kRows = 21;
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < kRows * 3 * 12 * 12; ++i)
    x.push_back(static_cast<float>((i * 37 + step * 11) % 29) / 29);
  for (std::int64_t r = 0; r < kRows; ++r) labels.push_back(static_cast<std::int32_t>(r % 10));
  return {from_floats(x, {kRows, 3, 12, 12}), from_ints(labels, {kRows})};
}

const auto kLoss = [](auto& net, const Tensor& x, const Tensor& label) {
  return cross_entropy(net(x), label);
};

class ManyThreads : public testing::TestWithParam<const char*> {};

template <class M>
void expect_same_bits(TrainOptions o, const std::function<Batch(int)>& batch) {
  o.threads = 1;
  const Outcome one = train<M>(o, batch, kLoss);
  for (const int threads : {2, 16, 64}) {
    o.threads = threads;
    const Outcome other = train<M>(o, batch, kLoss);
    EXPECT_EQ(one.losses, other.losses) << threads;
    EXPECT_EQ(one.grad_norms, other.grad_norms) << threads;
    EXPECT_EQ(differing(one, other), std::vector<std::string>()) << threads;
  }
}

TEST_P(ManyThreads, AGptKeepsItsBits) {
  expect_same_bits<Gpt>(
      {Mode::Compiled, GetParam(), 4, 1, 3, optim::AdamW{.lr = 5e-3, .clip_norm = 1.0}}, tokens);
}

TEST_P(ManyThreads, AConvolutionalNetKeepsItsBits) {
  expect_same_bits<ConvNet>({Mode::Compiled, GetParam(), 3, 1, 1, optim::Momentum{.lr = 0.05}},
                            images);
}

// What a plan set aside for each of its threads must do when the pool has since been changed.
TEST_P(ManyThreads, APlanRunsInAPoolOfAnotherSize) {
  use_cpu();
  const auto outcome = [&](int plan_threads, int pool) {
    eager().clear_tape();
    manual_seed(5);
    Gpt model;
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 5e-3}, GetParam());
    auto step = compile(
        [&net = net, &opt = opt](const Tensor& x, const Tensor& label) {
          return minimize(cross_entropy(net(x), label), opt);
        },
        {.name = "step", .threads = plan_threads});
    omp_set_num_threads(pool);
    Outcome run;
    for (int i = 0; i < 3; ++i) {
      const Batch b = tokens(i);
      run.losses.push_back(step(b.x, b.label).loss());
    }
    run.state = state_of(model, opt);
    return run;
  };
  const Outcome want = outcome(1, 1);
  for (const auto& [plan, pool] : {std::pair(1, 16), std::pair(2, 64), std::pair(64, 2)}) {
    const Outcome got = outcome(plan, pool);
    EXPECT_EQ(got.losses, want.losses) << plan << " " << pool;
    EXPECT_EQ(differing(want, got), std::vector<std::string>()) << plan << " " << pool;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ManyThreads, testing::Values("O0", "O2:bf16", "O2:fp16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == ':') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace aloft::e2e
