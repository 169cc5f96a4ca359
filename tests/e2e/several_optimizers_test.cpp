// One training with several optimizers: its checkpoints hold them all, of one step.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "checkpoint/checkpoints.h"
#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "models/mlp.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "temporary_folder.h"

namespace aloft::e2e {
namespace {

struct Critic : nn::Module {
  Critic(nn::Module& parent, std::string_view name) : Module(parent, name) {}
  nn::Linear up{*this, "up", 12, 16}, down{*this, "down", 16, 1};
  Tensor operator()(Operand x) const { return down(square(up(x))); }
};

struct Maker : nn::Module {
  Maker(nn::Module& parent, std::string_view name) : Module(parent, name) {}
  nn::Linear up{*this, "up", 6, 12};
  Tensor operator()(Operand x) const { return up(x); }
};

struct Gan : nn::Module {
  Maker maker{*this, "maker"};
  Critic critic{*this, "critic"};
};

// Two networks against each other, as a program has them that starts.
struct Training {
  explicit Training(const std::string& precision)
      : maker(amp::initialize(gan.maker, optim::AdamW{.lr = 1e-2}, precision)),
        critic(amp::initialize(gan.critic, optim::Momentum{.lr = 1e-3}, precision)) {}

  void step(bool is_compiled, int number) {
    const Tensor noise = spread(number, {8, 6}), real = spread(number + 50, {8, 12});
    is_compiled ? compiled_(noise, real) : update(noise, real);
  }
  Tensor update(const Tensor& noise, const Tensor& real) {
    const Tensor fake = maker.first(noise);
    minimize(mean(square(critic.first(fake))) - mean(critic.first(real)), critic.second);
    return minimize(mean(square(critic.first(fake))), maker.second).loss_tensor;
  }
  std::vector<std::string> state() const {
    std::vector<std::string> all;
    for (const VariablePtr& v : gan.parameters()) all.push_back(bytes_of(*v));
    for (const Optimizer& o : {maker.second, critic.second})
      for (const VariablePtr& v : o.state()) all.push_back(bytes_of(*v));
    return all;
  }

  Gan gan;
  std::pair<amp::Net<Maker>, Optimizer> maker;
  std::pair<amp::Net<Critic>, Optimizer> critic;

 private:
  Compiled<std::function<Tensor(Tensor, Tensor)>> compiled_ =
      compile(std::function<Tensor(Tensor, Tensor)>(
          [this](Tensor noise, Tensor real) { return update(noise, real); }));
};

void start() {
  use_cpu();
  eager().clear_tape();
  manual_seed(4);
}

class SeveralOptimizers : public testing::TestWithParam<bool> {};

TEST_P(SeveralOptimizers, AResumedTrainingEndsWithTheSameBits) {
  for (const std::string precision : {"O0", "O2:fp16", "O2:bf16"}) {
    SCOPED_TRACE(precision);
    const TemporaryFolder folder;
    start();
    Training straight(precision);
    for (int s = 0; s < 6; ++s) straight.step(GetParam(), s);
    start();
    {
      Training first(precision);
      Checkpoints checkpoints(folder.path());
      for (int s = 0; s < 3; ++s) first.step(GetParam(), s);
      checkpoints.save({3, 24}, first.gan, {first.maker.second, first.critic.second});
      first.step(GetParam(), 3);  // lost
    }
    start();
    Training second(precision);
    Checkpoints checkpoints(folder.path());
    const auto at = checkpoints.load(second.gan, {second.maker.second, second.critic.second});
    ASSERT_TRUE(at);
    EXPECT_EQ(at->step, 3);
    for (int s = 3; s < 6; ++s) second.step(GetParam(), s);
    EXPECT_TRUE(second.state() == straight.state());
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, SeveralOptimizers, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "compiled" : "eager"; });

TEST(OptimizersOfACheckpoint, OthersThanWereSavedAreRefusedAndNothingIsChanged) {
  const TemporaryFolder folder;
  start();
  Training training("O0");
  Checkpoints checkpoints(folder.path());
  const Optimizer& maker = training.maker.second;
  const Optimizer& critic = training.critic.second;
  training.step(false, 0);
  checkpoints.save({1, 8}, training.gan, {maker, critic});
  training.step(false, 1);
  const auto before = training.state();
  using List = std::vector<Optimizer>;
  for (const List& others : {List{critic, maker}, List{maker}})
    EXPECT_EQ(code_of([&] { checkpoints.load(training.gan, others); }), "E0641");
  for (const List& none : {List{}, List{maker, maker}}) {
    EXPECT_EQ(code_of([&] { checkpoints.load(training.gan, none); }), "E0807");
    EXPECT_EQ(code_of([&] { checkpoints.save({2, 8}, training.gan, none); }), "E0807");
  }
  EXPECT_TRUE(training.state() == before);
  EXPECT_TRUE(checkpoints.load(training.gan, {maker, critic}));
  EXPECT_FALSE(training.state() == before);
  std::ofstream(folder / "step-000001" / "state-1.safetensors", std::ios::app) << "x";
  EXPECT_EQ(code_of([&] { checkpoints.load(training.gan, {maker, critic}); }), "E0641");
}

// Each network's own, below a module that has none.
TEST(OptimizersOfACheckpoint, OfAnotherPrecisionAreRefused) {
  const TemporaryFolder folder;
  const auto load = [&](const char* maker, const char* critic) {
    start();
    Gan gan;
    auto [m, of_maker] = amp::initialize(gan.maker, optim::Sgd{}, maker);
    auto [c, of_critic] = amp::initialize(gan.critic, optim::Sgd{}, critic);
    Checkpoints checkpoints(folder.path());
    return code_of([&, &m = of_maker, &c = of_critic] {
      if (!checkpoints.load(gan, {m, c})) checkpoints.save({1, 8}, gan, {m, c});
    });
  };
  EXPECT_EQ(load("O1:bf16", "O0"), "");  // saves
  EXPECT_EQ(load("O1:bf16", "O0"), "");
  EXPECT_EQ(load("O1:fp16", "O0"), "E0641");
  EXPECT_EQ(load("O1:bf16", "O1:bf16"), "E0641");
  EXPECT_EQ(load("O0", "O0"), "E0641");
}

// Of a rule without moments the states have the same names, and other counts and scales.
TEST(OptimizersOfACheckpoint, WithoutMomentsAreToldApartByWhatTheyTrain) {
  const TemporaryFolder folder;
  start();
  Gan gan;
  auto [maker, of_maker] = amp::initialize(gan.maker, optim::Sgd{.lr = 1e-2}, "O0");
  auto [critic, of_critic] = amp::initialize(gan.critic, optim::Sgd{.lr = 1e-2}, "O0");
  for (int s = 0; s < 3; ++s) minimize(mean(square(critic(spread(s, {8, 12})))), of_critic);
  minimize(mean(square(maker(spread(1, {8, 6})))), of_maker);
  Checkpoints checkpoints(folder.path());
  checkpoints.save({3, 24}, gan, {of_maker, of_critic});
  EXPECT_EQ(code_of([&, &m = of_maker, &c = of_critic] {
              checkpoints.load(gan, {c, m});
            }),
            "E0641");
  EXPECT_TRUE(checkpoints.load(gan, {of_maker, of_critic}));
}

// A step whose loss is `loss`, as near as nothing, or no number.
StepResult step_of(const Tensor& output, Optimizer& opt, double loss) {
  return minimize(mean(output) * 1e-9 + loss, opt);
}

constexpr double kInf = std::numeric_limits<double>::infinity();

// A trunk under both, and optimizers over all parameters.
TEST(OptimizersOfACheckpoint, ThatShareParametersAreJudgedByTheirOwnLosses) {
  const TemporaryFolder folder;
  start();
  Gan gan;
  Optimizer small(optim::Sgd{.lr = 1e-3}, gan.parameters(), {});
  Optimizer large(optim::Sgd{.lr = 1e-3}, gan.parameters(), {});
  Checkpoints checkpoints(folder.path());
  for (int s = 0; s < 6; ++s) {
    checkpoints.step(step_of(gan.maker(spread(s, {8, 6})), small, 1), small);
    checkpoints.step(step_of(gan.critic(spread(s, {8, 12})), large, 100), large);
  }
  checkpoints.save({6, 48}, gan, {small, large});
  EXPECT_TRUE(checkpoints.load(gan, {small, large}));
}

// The optimizers' losses are of other sizes, and the steps of one may all be skipped.
TEST(OptimizersOfACheckpoint, AreJudgedByTheirOwnLosses) {
  for (const bool ruined : {false, true}) {
    SCOPED_TRACE(ruined);
    const TemporaryFolder folder;
    start();
    Gan gan;
    auto [maker, of_maker] = amp::initialize(gan.maker, optim::Sgd{.lr = 1e-2}, "O0");
    auto [critic, of_critic] = amp::initialize(gan.critic, optim::Sgd{.lr = 1e-2}, "O0");
    Checkpoints checkpoints(folder.path());
    for (int s = 0; s < 6; ++s) {
      const Tensor x = spread(s, {8, 12}), noise = spread(s, {8, 6});
      if (ruined) checkpoints.step(step_of(critic(x) * kInf, of_critic, 100), of_critic);
      checkpoints.step(step_of(maker(noise), of_maker, 1), of_maker);
      if (!ruined) checkpoints.step(step_of(critic(x), of_critic, 100), of_critic);
    }
    checkpoints.save({6, 48}, gan, {of_maker, of_critic});
    EXPECT_EQ(checkpoints.load(gan, {of_maker, of_critic}).has_value(), !ruined);
  }
}

}  // namespace
}  // namespace aloft::e2e
