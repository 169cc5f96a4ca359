// States that a program's own loop saves: which are healthy, and in which order.
#include <gtest/gtest.h>

#include <limits>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoints.h"
#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/grad_scaler.h"
#include "frontend/prepare_frozen.h"
#include "models/state_dict.h"
#include "nn/batch_norm.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "optim/adam.h"
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

// Up to 27 November 2026 what a run had frozen was rounded to the low type at O2; now it stays f32.
// A run that was saved so goes on to the bit: it computes with the weights that it has.
TEST(StatesOfARun, WithFrozenWeightsThatWereRoundedGoOnToTheBit) {
  use_cpu();
  const TemporaryFolder folder;
  struct Net : nn::Module {
    nn::Linear up{*this, "up", 6, 16}, down{*this, "down", 16, 3};
    nn::LayerNorm norm{*this, "norm", 16};
    Net() { requires_grad(false, "up.*"), requires_grad(false, "norm.*"); }
    Tensor operator()(Operand x) const { return down(norm(up(x))); }
  };
  std::vector<RecipeMistake> mistakes;
  const PrecisionRecipe recipe = parse_precision("O2:bf16", mistakes);
  ASSERT_TRUE(mistakes.empty());
  for (const StateFormat master : {StateFormat::F32, StateFormat::Split}) {
    const OptimizerSpec spec = optim::Adam{.lr = 1e-2, .master = master};
    const auto steps = [](Net& model, Optimizer& opt, int from, int count) {
      std::vector<double> losses;
      for (int i = 0; i < count; ++i) {
        ModuleScope scope("", model.policy());
        const Tensor loss = mean(square(model(spread(from + i, {5, 6})) - 1));
        losses.push_back(minimize(loss, opt).loss());
      }
      return losses;
    };
    const Path saved = folder.path() / std::to_string(static_cast<int>(master));
    make_folder(saved);
    manual_seed(7);
    Net before;
    Optimizer rounding = amp::prepare(before, spec, recipe);
    ASSERT_EQ(before.up.weight->type.dtype, DType::BF16);
    steps(before, rounding, 0, 3);
    CheckpointMeta meta;
    meta.policy = before.policy().str();
    write_checkpoint(saved, meta, before, {rounding});
    const std::vector<double> on = steps(before, rounding, 3, 3);

    manual_seed(8);
    Net now;
    Optimizer opt = amp::prepare_with_frozen(now, spec, recipe);
    ASSERT_EQ(now.up.weight->type.dtype, DType::F32);
    load_checkpoint(saved, {}, now, {opt});
    EXPECT_EQ(steps(now, opt, 3, 3), on);
    EXPECT_EQ(bytes_of(*now.down.weight), bytes_of(*before.down.weight));
    std::vector<float> frozen(96), rounded(96);
    models::read_state(*now.up.weight, 0, frozen);
    models::read_state(*before.up.weight, 0, rounded);
    EXPECT_EQ(frozen, rounded);
  }
}

}  // namespace
}  // namespace aloft::e2e
