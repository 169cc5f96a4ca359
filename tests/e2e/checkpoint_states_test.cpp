// States that a program's own loop saves: which are healthy, and in which order.
#include <gtest/gtest.h>

#include <limits>

#include "checkpoint/checkpoints.h"
#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/grad_scaler.h"
#include "nn/batch_norm.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "optim/sgd.h"
#include "temporary_folder.h"

namespace aloft::e2e {
namespace {

struct Normed : nn::Module {
  nn::BatchNorm2d norm{*this, "norm", 4};
  VariablePtr mask = add_buffer("mask", {3}, -std::numeric_limits<float>::infinity());
  Tensor operator()(Operand x) const { return norm(x); }
};

TEST(StatesOfALoop, WithBuffersThatAreNoNumbersAreMarked) {
  use_cpu();
  const TemporaryFolder folder;
  Normed model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 1e-3}, "O0");
  Checkpoints checkpoints(folder.path());
  checkpoints.save({1, 1}, model, opt);  // a mask may be infinite
  model.norm.running_var->buffer->write_one<float>(std::numeric_limits<float>::quiet_NaN(), 2);
  checkpoints.save({2, 2}, model, opt);
  EXPECT_EQ(checkpoints.load(model, opt)->step, 1);
}

// A loop may save once more where its last step has ruined the weights.
TEST(StatesOfALoop, AreNotReplacedByMarkedOnesOfTheirStep) {
  use_cpu();
  for (const std::int64_t step : {0, 5}) {
    const TemporaryFolder folder;
    Normed model;
    auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 1e-3}, "O0");
    const std::string healthy = bytes_of(*model.parameters()[0]);
    Checkpoints checkpoints(folder.path(), 1);
    const Path saved = checkpoints.save({step, 1}, model, opt);
    model.parameters()[0]->buffer->write_one<float>(std::numeric_limits<float>::quiet_NaN(), 0);
    EXPECT_EQ(checkpoints.save({step, 1}, model, opt), saved);
    ASSERT_TRUE(checkpoints.load(model, opt).has_value());
    EXPECT_EQ(bytes_of(*model.parameters()[0]), healthy);
    model.parameters()[0]->buffer->write_one<float>(std::numeric_limits<float>::infinity(), 0);
    checkpoints.save({step, 1}, model, opt);
    EXPECT_EQ(checkpoints.load(model, opt)->step, step);
  }
}

// A loop that does not go on from where load() says would have its checkpoints removed, one behind
// the other, and the next start would find the old one.
TEST(StatesOfALoop, OfEarlierStepsThanThoseThatLieThereAreRefused) {
  use_cpu();
  const TemporaryFolder folder;
  Normed model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 1e-3}, "O0");
  const auto refused = [&, &opt = opt](Checkpoints& checkpoints, std::int64_t step) {
    return code_of([&] { checkpoints.save({step, 1}, model, opt); });
  };
  {
    Checkpoints first(folder.path());
    EXPECT_EQ(refused(first, 20), "");
    EXPECT_EQ(refused(first, 5), "E0824");
    EXPECT_EQ(refused(first, 20), "");
  }
  Checkpoints second(folder.path());
  EXPECT_EQ(second.load(model, opt)->step, 20);
  EXPECT_EQ(refused(second, 19), "E0824");
  EXPECT_EQ(refused(second, 21), "");
}

// A loop of PyTorch's, whose scaler begins with a scale that is too large.
TEST(StatesOfALoop, AreHealthyWhileTheLoopsOwnScalerSearches) {
  use_cpu();
  const TemporaryFolder folder;
  Normed model;
  Optimizer opt(optim::Sgd{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  Checkpoints checkpoints(folder.path());
  amp::GradScaler scaler({.init_scale = 0x1p120});
  const Tensor x = spread(1, {2, 4, 3, 3});
  int skipped = 0;
  for (std::int64_t step = 1; step <= 8; ++step) {
    const Tensor loss = mean(square(model(x))) * 0x1p15;
    scaler.scale(loss).backward();
    const StepResult result = scaler.step(opt);
    scaler.update();
    checkpoints.step(result, opt);
    skipped += result.skipped();
    checkpoints.save({step, 0}, model, opt);
  }
  EXPECT_GT(skipped, kStraySkips);
  EXPECT_EQ(checkpoints.load(model, opt)->step, 8);
}

}  // namespace
}  // namespace aloft::e2e
