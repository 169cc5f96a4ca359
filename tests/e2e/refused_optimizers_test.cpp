// Optimizers that would ruin weights without a word are refused where they are made, and leave the
// model as it was.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "optim/adam.h"
#include "optim/adamw.h"
#include "optim/bert_adam.h"
#include "optim/lamb.h"
#include "optim/muon.h"
#include "optim/sgd.h"
#include "training.h"

namespace aloft::e2e {
namespace {

struct Mlp : nn::Module {
  nn::Linear up{*this, "up", 3, 4}, down{*this, "down", 4, 2};
  Tensor operator()(const Tensor& x) { return down(gelu(up(x))); }
};

// What is said; "" where it is accepted. A refusal changes nothing: the model can be prepared.
std::string refusal(const OptimizerSpec& spec, const std::string& precision = "O2:bf16") {
  use_cpu();
  Mlp model;
  try {
    amp::initialize(model, spec, precision);
  } catch (const UserError& e) {
    for (const VariablePtr& p : model.parameters()) {
      EXPECT_EQ(p->type.dtype, DType::F32) << e.what();
      EXPECT_EQ(p->master, nullptr) << e.what();
    }
    amp::initialize(model, optim::Sgd{}, "O2:bf16");
    return e.what();
  }
  return "";
}

void expect_words(const std::string& said, std::initializer_list<const char*> words) {
  for (const char* word : words)
    EXPECT_NE(said.find(word), std::string::npos) << word << "\n" << said;
}

struct BadNumber {
  const char *saw, *need;
  OptimizerSpec spec;
};

TEST(RefusedOptimizers, EveryNumberHasARange) {
  const char* from_zero = "0 or more, and finite";
  const char* below_one = "0 or more, below 1";
  const double inf = INFINITY;
  const BadNumber bad[] = {
      {"lr = -1", from_zero, optim::AdamW{.lr = -1}},
      {"lr = nan", from_zero, optim::Sgd{.lr = NAN}},
      {"lr = inf", from_zero, optim::Momentum{.lr = inf}},
      {"lr = 1e+300", from_zero, optim::Adam{.lr = 1e300}},  // inf in fp32
      {"weight_decay = nan", from_zero, optim::AdamW{.weight_decay = NAN}},
      {"weight_decay = -5", from_zero, optim::Sgd{.weight_decay = -5}},
      {"eps = -1", from_zero, optim::AdamW{.eps = -1}},
      {"eps = nan", from_zero, optim::Adam{.eps = NAN}},
      {"beta1 = 1.5", below_one, optim::AdamW{.beta1 = 1.5}},
      {"beta1 = 1", below_one, optim::Adam{.beta1 = 1}},
      {"beta2 = -0.5", below_one, optim::AdamW{.beta2 = -0.5}},
      {"beta2 = nan", below_one, optim::AdamW{.beta2 = NAN}},
      {"momentum = -3", from_zero, optim::Momentum{.momentum = -3}},
      {"momentum = inf", from_zero, optim::Sgd{.momentum = inf}},
      {"dampening = nan", "finite", optim::Sgd{.momentum = 0.9, .dampening = NAN}},
      {"clip_norm = -1", from_zero, optim::AdamW{.clip_norm = -1}},
      {"clip_norm = nan", from_zero, optim::Sgd{.clip_norm = NAN}},
      {"schedule cosine, warmup = 0, total = 0", "total must be at least 1",
       optim::AdamW{.schedule = {.kind = scalar::ScheduleKind::Cosine}}},
      {"schedule constant, warmup = -2", "warmup must not be negative",
       optim::AdamW{.schedule = {.warmup = -2}}},
      {"schedule sequence, warmup = 0", "milestones must be one fewer",
       optim::AdamW{.schedule = {.kind = scalar::ScheduleKind::Sequence, .parts = {{}, {}}}}},
      {"clip_norm = 1, max_grad_norm = 2", "clip_norm alone",
       optim::AdamW{.clip_norm = 1, .max_grad_norm = 2}},
      {"clip_norm = -1", from_zero, optim::Lamb{.max_grad_norm = -1}},
      {"differentiable = true", "no gradient goes through it", optim::Sgd{.differentiable = true}},
      {"lr = -1 in the group of \"*.bias, up.*\"", from_zero,
       optim::AdamW{.groups = {{.parameters = {"*.bias", "up.*"}, .lr = -1.0}}}},
  };
  for (const BadNumber& b : bad) expect_words(refusal(b.spec), {"E0814", b.saw, b.need});
}

TEST(RefusedOptimizers, OfALossScaleWhatItsKindReads) {
  use_cpu();
  const Mlp model;
  using scalar::ScalerRule;
  const auto said = [&](const ScalerRule& rule) -> std::string {
    try {
      Optimizer(optim::Sgd{}, model.parameters(), rule);
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  const std::string none = said({.give_up_after = 0});
  expect_words(none, {"E0814", "a loss scale that is none, give_up_after = 0\n"});
  ScalerRule dynamic = scalar::dynamic_scaler();
  dynamic.growth_interval = -3;
  expect_words(said(dynamic), {"init = 65536", "growth_interval = -3, min = 1"});
  expect_words(said(scalar::fixed_scaler(-2)), {"fixed, init = -2, give_up_after = 1000"});
}

TEST(RefusedOptimizers, AllThatIsWrongIsSaidAtOnce) {
  expect_words(refusal(optim::AdamW{.lr = -1, .eps = -2, .clip_norm = -3}),
               {"lr = -1", "eps = -2", "clip_norm = -3"});
}

TEST(RefusedOptimizers, TheEndsOfTheRangesAreAccepted) {
  EXPECT_EQ(refusal(optim::AdamW{.lr = 0, .beta1 = 0, .beta2 = 0, .eps = 0, .weight_decay = 0}),
            "");
  EXPECT_EQ(refusal(optim::Sgd{.lr = 1e-30, .momentum = 1.5, .dampening = -1}), "");
}

// What torch.optim's optimizers take besides is taken, and explained where it changes nothing.
TEST(RefusedOptimizers, SwitchesOfTorchAreExplained) {
  const auto said = [](const OptimizerSpec& spec) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(refusal(spec), "");
    return ::testing::internal::GetCapturedStderr();
  };
  expect_words(said(optim::AdamW{.foreach = true, .fused = true, .capturable = true}),
               {"foreach changes nothing: every update is one sweep", "fused changes nothing",
                "capturable changes nothing: a step asks the host nothing"});
  EXPECT_EQ(said(optim::AdamW{.differentiable = false, .max_grad_norm = 0.5}), "");
  const OptimizerSpec lamb = optim::Lamb{.max_grad_norm = 0.5};
  EXPECT_EQ(lamb.clip_norm, 0.5);
  const OptimizerSpec bert = optim::BertAdam{.max_grad_norm = 0.5};  // of each tensor
  EXPECT_EQ(bert.clip_norm, 0);
  EXPECT_EQ(OptimizerSpec(optim::Muon{.ns_steps = 5}).lr, 1e-3);
  try {
    static_cast<void>(OptimizerSpec(optim::Muon{.ns_steps = 6}));
    FAIL();
  } catch (const UserError& e) {
    expect_words(e.what(), {"E0814", "ns_steps = 6", "made for five steps"});
  }
}

// A slip in a pattern would do nothing, silently; the nearest name is told.
TEST(RefusedOptimizers, PatternsThatMatchNothing) {
  const optim::Sgd plain;
  expect_words(refusal(plain, "O2 deny_ops=lineer"), {"E0809", "deny_ops", "lineer", "\"linear\""});
  expect_words(refusal(plain, "O1 allow_ops=sofmax*"), {"E0809", "allow_ops", "\"softmax\""});
  expect_words(refusal(plain, "O2 deny_params=up.*,dwn.*"), {"E0809", "dwn.*", "\"down.weight\""});
  const auto without = [](std::vector<std::string> patterns) {
    return optim::AdamW{.decay = {.norms = false, .without = std::move(patterns)}};
  };
  expect_words(refusal(without({"nothing.*"})), {"E0809", "nothing.*", "up.weight"});
  expect_words(refusal(without({"up.wieght"})), {"E0809", "\"up.weight\""});
  const auto groups = [](std::vector<ParameterGroup> all) {
    return optim::AdamW{.groups = std::move(all)};
  };
  const ParameterGroup wide{.parameters = {"up.*"}, .lr = 1e-4};
  const ParameterGroup narrow{.parameters = {"up.bias"}, .lr = 1e-5};
  expect_words(refusal(groups({wide, narrow})), {"E0809", "up.bias", "before the wider one"});
  EXPECT_EQ(refusal(groups({narrow, wide})), "");
  EXPECT_EQ(refusal(plain, "O2 deny_ops=lin* deny_params=down.*"), "");
  EXPECT_EQ(refusal(without(kWeightsDecay.without)), "");
}

}  // namespace
}  // namespace aloft::e2e
