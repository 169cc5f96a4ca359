// The program of the architecture's section 9, in every precision: eager and compiled agree to the
// bit at every step, on any number of threads, and the loss falls.
#include <gtest/gtest.h>

#include "base/error.h"
#include "e2e/training.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "ops/cross_entropy.h"
#include "optim/adam.h"
#include "optim/adamw.h"
#include "optim/lamb.h"
#include "optim/lion.h"
#include "optim/sgd.h"
#include "scalar/philox.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kFeatures = 20, kClasses = 7, kBatch = 16;

struct Mlp : nn::Module {
  nn::Linear up{*this, "up", kFeatures, 48}, down{*this, "down", 48, kClasses};
  Tensor operator()(const Tensor& x) { return down(gelu(up(x))); }
};

// Points whose class is the largest of their first features. Every third batch is a partial one.
Batch points(int step) {
  const std::int64_t rows = step % 3 == 2 ? kBatch - 5 : kBatch;
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  for (std::int64_t r = 0; r < rows; ++r) {
    const scalar::RandomKey key{7, static_cast<std::uint64_t>(step), 0,
                                static_cast<std::uint64_t>(r)};
    std::int32_t best = 0;
    for (std::int64_t f = 0; f < kFeatures; ++f) {
      x.push_back(static_cast<float>(scalar::normal(key, f)));
      const float* row = x.data() + r * kFeatures;
      if (f < kClasses && row[f] > row[best]) best = static_cast<std::int32_t>(f);
    }
    labels.push_back(best);
  }
  return {from_floats(x, {rows, kFeatures}), from_ints(labels, {rows})};
}

const auto kLoss = [](auto& net, const Tensor& x, const Tensor& label) {
  return cross_entropy(net(x), label);
};

TrainOptions options(Mode mode, const std::string& precision, int threads = 2) {
  return {mode, precision, 60, threads, 1, optim::AdamW{.lr = 1e-2}};
}

class MlpPrecision : public testing::TestWithParam<const char*> {};

TEST_P(MlpPrecision, EagerEqualsCompiledAndTheLossFalls) {
  const Outcome eager = train<Mlp>(options(Mode::Eager, GetParam()), points, kLoss);
  const Outcome compiled = train<Mlp>(options(Mode::Compiled, GetParam()), points, kLoss);
  EXPECT_EQ(eager.losses, compiled.losses);
  EXPECT_EQ(eager.grad_norms, compiled.grad_norms);
  EXPECT_EQ(differing(eager, compiled), std::vector<std::string>());
  EXPECT_LT(compiled.last(), 0.6 * compiled.first());
  EXPECT_EQ(compiled.skipped, 0);
}

TEST_P(MlpPrecision, ThreadsDoNotChangeABit) {
  const Outcome two = train<Mlp>(options(Mode::Compiled, GetParam(), 2), points, kLoss);
  for (int threads : {1, 4}) {
    const Outcome other = train<Mlp>(options(Mode::Compiled, GetParam(), threads), points, kLoss);
    EXPECT_EQ(two.losses, other.losses) << threads;
    EXPECT_EQ(differing(two, other), std::vector<std::string>()) << threads;
  }
}

const char* const kPrecisions[] = {"O0",
                                   "O1:bf16",
                                   "O1:fp16",
                                   "O2:bf16",
                                   "O2:fp16",
                                   "O3:bf16",
                                   "O3:fp16",
                                   "O2:bf16 backward=f16",
                                   "O1:fp16 backward=bf16"};
std::string name_of_precision(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, MlpPrecision, testing::ValuesIn(kPrecisions), name_of_precision);

TEST(Mlp, FrozenParametersKeepTheirBits) {
  const auto freeze = [](Mlp& m) { m.requires_grad(false, "up.*"); };
  use_cpu();
  for (const char* precision : {"O0", "O2:fp16"}) {
    manual_seed(1);
    Mlp fresh;
    amp::prepare(fresh, optim::AdamW{}, parse_precision(precision));
    for (Mode mode : {Mode::Eager, Mode::Compiled}) {
      const Outcome run = train<Mlp>(options(mode, precision), points, kLoss, {freeze});
      EXPECT_EQ(run.state.at("up.weight"), bytes_of(*fresh.up.weight));
      EXPECT_EQ(run.state.at("up.bias"), bytes_of(*fresh.up.bias));
      EXPECT_NE(run.state.at("down.weight"), bytes_of(*fresh.down.weight));
      EXPECT_FALSE(run.state.contains("optim.exp_avg.up.weight"));
      EXPECT_LT(run.last(), run.first());
    }
  }
}

const std::vector<ParameterGroup> kGroups = {{.parameters = {"up.weight"}, .lr = 3e-3},
                                             {.parameters = {"*.bias"}, .weight_decay = 0.5}};

TEST(Mlp, GroupsHaveTheirOwnRateAndDecay) {
  const auto bits = [](std::vector<ParameterGroup> groups) {
    const optim::AdamW spec{.lr = 1e-2, .groups = std::move(groups)};
    TrainOptions o{Mode::Compiled, "O2:fp16", 1, 2, 1, spec};
    return train<Mlp>(o, points, kLoss).state;
  };
  const auto plain = bits({}), own = bits(kGroups);
  for (const char* name : {"up.weight", "optim.master.up.weight"})
    EXPECT_NE(own.at(name), plain.at(name)) << name;
  for (const char* name : {"optim.master.down.weight", "optim.exp_avg.up.weight"})
    EXPECT_EQ(own.at(name), plain.at(name)) << name;
  // Biases do not decay, unless a group says so.
  EXPECT_NE(own.at("up.bias"), plain.at("up.bias"));
  // Groups that say what holds anyway change no bit; the first that matches takes a parameter.
  EXPECT_EQ(bits({{.parameters = {"up.*"}, .lr = 1e-2}, {.parameters = {"*"}}}), plain);
  EXPECT_EQ(bits({kGroups[0], {.parameters = {"up.weight", "*.bias"}, .weight_decay = 0.5}}), own);
}

TEST(Mlp, MistakenGroupsAreRefused) {
  use_cpu();
  const auto said = [](const ParameterGroup& group) -> std::string {
    Mlp model;
    try {
      amp::initialize(model, optim::AdamW{.groups = {group}}, "O0");
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  const std::string wrong = said({.parameters = {"up.*", "dwn.weight"}});
  for (const char* word : {"E0809", "dwn.weight", "\"down.weight\""})
    EXPECT_NE(wrong.find(word), std::string::npos) << wrong;
  EXPECT_NE(said({}).find("E0809"), std::string::npos);
  EXPECT_NE(said({.parameters = {"*"}, .lr = -1.0}).find("E0814"), std::string::npos);
  EXPECT_NE(said({.parameters = {"*"}, .weight_decay = NAN}).find("E0814"), std::string::npos);
  EXPECT_EQ(said({.parameters = {"*"}, .lr = 0.0}), "");
}

TEST(Mlp, EveryOptimizerAgreesInBothModes) {
  const OptimizerSpec specs[] = {optim::Sgd{.lr = 0.1},
                                 optim::Momentum{.lr = 0.05},
                                 optim::Sgd{.lr = 0.05, .momentum = 0.9, .nesterov = true},
                                 optim::Adam{.lr = 1e-2},
                                 optim::Lamb{.lr = 1e-2},
                                 optim::Lion{.lr = 2e-3},
                                 optim::AdamW{.lr = 1e-2, .states = StateFormat::BF16},
                                 optim::AdamW{.lr = 1e-2, .clip_norm = 0.1},
                                 optim::AdamW{.lr = 1e-2, .clip_norm = 0.1, .groups = kGroups}};
  for (const OptimizerSpec& spec : specs) {
    TrainOptions o{Mode::Eager, "O2:bf16", 30, 2, 1, spec};
    const Outcome eager = train<Mlp>(o, points, kLoss);
    o.mode = Mode::Compiled;
    const Outcome compiled = train<Mlp>(o, points, kLoss);
    EXPECT_EQ(eager.losses, compiled.losses) << spec.rule.name();
    EXPECT_EQ(differing(eager, compiled), std::vector<std::string>()) << spec.rule.name();
    EXPECT_LT(compiled.last(), compiled.first()) << spec.rule.name();
  }
}

}  // namespace
}  // namespace aloft::e2e
