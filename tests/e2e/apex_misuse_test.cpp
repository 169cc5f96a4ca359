// Gradients of amp::scale_loss whose loss scale has moved before something divided them, losses
// that another scaler has scaled, and numbers that no loss scale can have: refused, where a step
// would be too large or too small. What amp::GradientFusion tells of gradients between a block and
// the step.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/amp.h"
#include "frontend/amp_state.h"
#include "frontend/grad_scaler.h"
#include "frontend/gradient_fusion.h"
#include "frontend/left_gradients.h"
#include "frontend/loss_scalers.h"
#include "frontend/module.h"
#include "frontend/scale_loss.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/reduce.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

using amp::Options;

struct Pair : nn::Module {
  VariablePtr w = add_parameter("w", {2}, [](float* to, std::int64_t) { to[0] = 1, to[1] = -2; });
  Tensor operator()(const Tensor& factor) const { return sum(use(w) * factor); }
  std::vector<float> weights() const { return w->to_floats(); }
};

const std::vector<float> kBefore = {1, -2}, kAfter = {0.875f, -2.125f};  // a step by {1, 1}

Tensor ones() { return full({2}, 1); }

Options plain(Options o = {}) {
  o.patch_torch_functions = false;
  o.verbosity = 0;
  return o;
}

void begin() {
  use_cpu();
  eager().clear_tape();
  eager().forget_gradients();
}

// Two models, each with an optimizer; they have the loss scale in common.
struct TwoOptimizers {
  Pair a, b;
  std::vector<Optimizer> opts;
  explicit TwoOptimizers(const Options& options = plain()) {
    begin();
    opts =
        amp::initialize(std::tie(a, b), {optim::Sgd{.lr = 0.125}, optim::Sgd{.lr = 0.125}}, options)
            .second;
  }
  double scale() const { return amp::state_dict(opts[0]).loss_scalers[0].loss_scale; }
  void load(double scale) const { amp::load_state_dict(opts[0], {{{.loss_scale = scale}}}); }
};

constexpr const char* kMoved = "moved since";

TEST(ApexMisuse, AStepWithWhatABlockOfAnotherOptimizerLeftIsRefused) {
  for (const auto& [factor, scale] : {std::pair{INFINITY, 32768.0}, {1.0f, 131072.0}}) {
    TwoOptimizers s(plain({.scale_window = 1}));
    amp::scale_loss(s.a(full({2}, factor)) + s.b(ones()), s.opts[0]).backward();
    ASSERT_EQ(s.scale(), scale);
    expect_words(refusal([&] { amp::step(s.opts[1]); }), {"E0808", kMoved, "{a, b}"});
    EXPECT_EQ(s.b.weights(), kBefore);
    s.opts[1].zero_grad();
    amp::step(s.opts[0]);
    amp::scale_loss(s.b(ones()), s.opts[1]).backward();
    EXPECT_FALSE(amp::step(s.opts[1]).skipped());
    EXPECT_EQ(s.b.weights(), kAfter);
  }
}

TEST(ApexMisuse, ScaledGradientsUponDividedOnesAreRefused) {
  TwoOptimizers s;
  amp::scale_loss(s.b(ones()), s.opts[1]).backward();
  amp::scale_loss(s.a(ones()) + s.b(ones()), s.opts[0]).backward();
  expect_words(refusal([&] { amp::step(s.opts[1]); }), {"E0808", "multiplied", "{a, b}"});
  expect_words(refusal([&] { amp::scale_loss(s.b(ones()), s.opts[1]).backward(); }),
               {"E0808", "multiplied"});
  EXPECT_EQ(s.b.weights(), kBefore);
  EXPECT_FALSE(amp::step(s.opts[0]).skipped());
  EXPECT_EQ(s.a.weights(), kAfter);
}

TEST(ApexMisuse, AScaleThatIsLoadedWithinABlockIsRefused) {
  for (const bool is_before_backward : {false, true}) {
    TwoOptimizers s;
    Optimizer& opt = s.opts[0];
    auto scaled = amp::scale_loss(s.a(ones()), opt);
    if (is_before_backward) s.load(2);
    scaled.backward();
    if (!is_before_backward) s.load(2);
    expect_words(refusal([&] { scaled.end(); }), {"E0808", kMoved, "load_state_dict"});
    EXPECT_EQ(code_of([&] { amp::step(opt); }), "E0808");  // nothing is left
    EXPECT_EQ(s.a.weights(), kBefore);
    amp::scale_loss(s.a(ones()), opt).backward();
    EXPECT_EQ(amp::step(opt).loss_scale.item(), 2);
    EXPECT_EQ(s.a.weights(), kAfter);
  }
}

// The first block's gradients would come back at the end of the second.
TEST(ApexMisuse, GradientsAreNotDroppedWithinALaterBlock) {
  TwoOptimizers s;
  Optimizer& opt = s.opts[0];
  {
    auto first = amp::scale_loss(s.a(ones()), opt);
    opt.zero_grad();  // there is nothing yet
    first.backward();
  }
  {
    auto second = amp::scale_loss(s.a(ones()), opt);
    expect_words(refusal([&] { opt.zero_grad(); }), {"E0808", "zero_grad()", "first block"});
    second.backward();
  }
  opt.zero_grad();
  EXPECT_EQ(code_of([&] { amp::step(opt); }), "E0808");
  EXPECT_EQ(s.a.weights(), kBefore);
  amp::scale_loss(s.a(ones()), opt).backward();
  amp::step(opt);
  EXPECT_EQ(s.a.weights(), kAfter);
}

// What the fork warns of at O0 and refuses at O3.
TEST(ApexMisuse, CombinedGradientsAreAWordOfSomeLevels) {
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    begin();
    Pair model;
    ::testing::internal::CaptureStderr();
    amp::initialize(model, optim::Sgd{},
                    {.opt_level = level, .verbosity = 0, .combine_grad = true});
    const std::string said = ::testing::internal::GetCapturedStderr();
    const bool is_word =
        said.find("combine_grad changes nothing at " + std::string(level)) != std::string::npos;
    EXPECT_EQ(is_word, level == std::string("O0") || level == std::string("O3")) << said;
  }
}

TEST(GradientFusion, TellsTheNormAndWhetherAllAreFinite) {
  TwoOptimizers s;
  const amp::GradientFusion fusion(1024);
  EXPECT_EQ(fusion.fusion_size(), 1024);
  for (const float factor : {1.5f, INFINITY}) {
    amp::scale_loss(s.a(full({2}, factor)), s.opts[0]).backward();
    const amp::FusedGradients all = fusion.of(s.opts[0]);
    EXPECT_EQ(all.elements, 2);
    EXPECT_EQ(all.finite.item(), factor == 1.5f);
    if (factor == 1.5f) EXPECT_FLOAT_EQ(float(all.norm.item()), 1.5f * std::sqrt(2.0f));
    EXPECT_EQ(amp::step(s.opts[0]).skipped(), factor != 1.5f);  // they were left there
  }
}

// A GradScaler's scale is no part of the norm, before its unscale_() and behind it.
TEST(GradientFusion, KnowsTheScaleOfAGradScaler) {
  begin();
  Pair w;
  Optimizer opt(optim::Sgd{.lr = 0.5}, w.parameters(), scalar::no_scaler());
  amp::GradScaler scaler({.init_scale = 1024});
  const amp::GradientFusion fusion;
  scaler.scale(w(full({2}, 1.5f))).backward();
  EXPECT_FLOAT_EQ(float(fusion.of(opt).norm.item()), 1024 * 1.5f * std::sqrt(2.0f));
  for (const bool is_divided : {false, true}) {
    if (is_divided) scaler.unscale_(opt);
    const amp::FusedGradients all = fusion.of(opt, scaler);
    EXPECT_FLOAT_EQ(float(all.norm.item()), 1.5f * std::sqrt(2.0f)) << is_divided;
    EXPECT_EQ(all.finite.item(), 1);
  }
  EXPECT_FALSE(scaler.step(opt).skipped());
  scaler.update();
  expect_words(refusal([&] { fusion.of(opt, scaler); }), {"E0808", "no gradients"});
}

// Divided by a scale that they were never multiplied with, the norm would be off by it.
TEST(GradientFusion, GradientsThatTheScalerHasNotScaledAreRefused) {
  begin();
  Pair w;
  Optimizer opt(optim::Sgd{.lr = 0.5}, w.parameters(), scalar::no_scaler());
  amp::GradScaler scaler({.init_scale = 1024}), other({.init_scale = 4}), off({.enabled = false});
  const amp::GradientFusion fusion;
  const auto refused = [&](const amp::GradScaler& by) {
    expect_words(refusal([&] { fusion.of(opt, by); }), {"E0808", "without the loss scale"});
  };
  w(full({2}, 1.5f)).backward();
  refused(scaler);
  EXPECT_FLOAT_EQ(float(fusion.of(opt, off).norm.item()), 1.5f * std::sqrt(2.0f));
  opt.zero_grad();
  scaler.scale(w(full({2}, 1.5f))).backward();
  refused(other);
  EXPECT_FLOAT_EQ(float(fusion.of(opt, scaler).norm.item()), 1.5f * std::sqrt(2.0f));
}

TEST(GradientFusion, WhatCannotBeReadTogetherIsRefused) {
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{-1}})
    expect_words(refusal([&] { static_cast<void>(amp::GradientFusion(size)); }),
                 {"E0814", "fusion_size", "1 or more"});
  TwoOptimizers s;
  const amp::GradientFusion fusion;
  EXPECT_EQ(fusion.fusion_size(), 32 << 20);
  const auto refused = [&](const char* word) {
    expect_words(refusal([&] { fusion.of(s.opts[0]); }), {"E0808", word});
  };
  refused("no gradients");
  auto scaled = amp::scale_loss(s.a(ones()), s.opts[0], {.delay_unscale = true});
  scaled.backward();
  refused("multiplied");  // within the block
  scaled.end();
  refused("multiplied");  // behind it
  amp::scale_loss(s.a(ones()), s.opts[0]).backward();
  EXPECT_EQ(fusion.of(s.opts[0]).finite.item(), 1);
}

TEST(ApexMisuse, AScaleThatIsLoadedUnderDelayedGradientsIsRefused) {
  TwoOptimizers s;
  amp::scale_loss(s.a(ones()), s.opts[0], {.delay_unscale = true}).backward();
  s.load(2);
  EXPECT_EQ(code_of([&] { amp::scale_loss(s.a(ones()), s.opts[0]).backward(); }), "E0808");
}

// What a block has divided has nothing to do with the scale any more, whatever comes behind it.
TEST(ApexMisuse, DividedGradientsOutliveTheirScale) {
  begin();
  Pair a, b;
  auto opts =
      amp::initialize(std::tie(a, b), {optim::Sgd{.lr = 0.125}}, plain({.num_losses = 2})).second;
  Optimizer& opt = opts[0];
  const std::vector<amp::AmpState::LossScaler> scales = {{.loss_scale = 2}, {.loss_scale = 4}};
  amp::scale_loss(a(ones()), opt).backward();  // set aside, and put back twice
  amp::load_state_dict(opt, {scales});
  amp::scale_loss(b(ones() * 0.5), opt).backward();
  amp::scale_loss(b(ones() * 0.5), opt, {.loss_id = 1}).backward();
  amp::load_state_dict(opt, {scales});
  EXPECT_FALSE(amp::step(opt).skipped());
  EXPECT_EQ(a.weights(), kAfter);
  EXPECT_EQ(b.weights(), kAfter);
}

// --- losses that another scaler has scaled

// Nothing would divide by that scale.
TEST(ApexMisuse, AStepWithTheLossOfAnotherScalerIsRefused) {
  begin();
  Pair w;
  Optimizer opt(optim::Sgd{.lr = 0.125}, w.parameters(), scalar::no_scaler());
  amp::GradScaler scaler({.init_scale = 1024}), off({.enabled = false});
  const auto refused = [&] {
    for (const auto& text : {refusal([&] { amp::step(opt); }), refusal([&] { off.step(opt); })})
      expect_words(text,
                   {"E0808", "'w' of a loss that a scaler has scaled", "unscale_(optimizer)"});
    EXPECT_EQ(w.weights(), kBefore);
  };
  w(ones()).backward();
  scaler.scale(w(ones())).backward();  // of one of two losses
  refused();
  opt.zero_grad();
  scaler.scale(w(ones())).backward();
  refused();
  expect_words(refusal([&] { clip_grad_value_(w.parameters(), 1e6); }),
               {"E0808", "'w' of a loss that a scaler has scaled", "unscale_(optimizer)"});
  refused();
  scaler.unscale_(opt);
  EXPECT_FALSE(amp::step(opt).skipped());
  EXPECT_EQ(w.weights(), kAfter);
}

// A loop that divides by itself knows what it does.
TEST(ApexMisuse, GradientsThatALoopGivesAreTakenAsTheyAre) {
  begin();
  Pair w;
  Optimizer opt(optim::Sgd{.lr = 0.125}, w.parameters(), scalar::no_scaler());
  amp::StaticLossScaler by_hand(8);
  by_hand.scale(w(ones())).backward();
  EXPECT_EQ(code_of([&] { amp::step(opt); }), "E0808");
  set_grad(w.w, by_hand.unscale(grad_of(w.w)));
  amp::step(opt);
  EXPECT_EQ(w.weights(), kAfter);
}

TEST(ApexMisuse, TwoScalesOfOneLossAreRefused) {
  TwoOptimizers s;
  amp::GradScaler one, two;
  expect_words(refusal([&] { amp::scale_loss(one.scale(s.a(ones())), s.opts[0]).backward(); }),
               {"E0808", "two loss scales", "another scaler"});
  begin();
  Pair w;
  Optimizer opt(optim::Sgd{}, w.parameters(), scalar::no_scaler());
  one.scale(two.scale(w(ones()))).backward();
  for (amp::GradScaler* scaler : {&one, &two}) {
    expect_words(refusal([&] { scaler->unscale_(opt); }), {"E0808", "two loss scales"});
    expect_words(refusal([&] { scaler->step(opt); }), {"E0808", "two loss scales"});
  }
  EXPECT_EQ(s.a.weights(), kBefore);
  EXPECT_EQ(w.weights(), kBefore);
}

// It would multiply the loss once more, or divide by its own scale alone.
TEST(ApexMisuse, AWholeStepWithAScaledLossIsRefused) {
  TwoOptimizers s;
  Pair w;
  Optimizer plain_opt(optim::Sgd{.lr = 0.125}, w.parameters(), scalar::no_scaler());
  amp::GradScaler scaler({.init_scale = 1024}), own(s.opts[0]);
  amp::DynamicLossScaler other(1024, 2, 50);
  const auto refused = [](const auto& step) {
    auto compiled = compile(step);
    for (const auto& text : {refusal([&] { step(ones()); }), refusal([&] { compiled(ones()); })})
      expect_words(text, {"E0808", "multiplied with a loss scale already", "the loss itself"});
  };
  refused([&](const Tensor& x) { return minimize(scaler.scale(w(x)), plain_opt).loss_tensor; });
  refused([&](const Tensor& x) { return minimize(other.scale(w(x)), plain_opt).loss_tensor; });
  refused([&](const Tensor& x) { return minimize(own.scale(s.a(x)), s.opts[0]).loss_tensor; });
  s.opts[0].set_accumulation(2);
  refused([&](const Tensor& x) { return accumulate(own.scale(s.a(x)), s.opts[0]); });
  s.opts[0].set_accumulation(1);
  EXPECT_EQ(code_of([&] { minimize(amp::scale_loss(s.a(ones()), s.opts[0]), s.opts[0]); }),
            "E0808");
  EXPECT_EQ(s.a.weights(), kBefore);
  EXPECT_EQ(w.weights(), kBefore);
  minimize(s.a(ones()), s.opts[0]);
  minimize(w(ones()), plain_opt);
  EXPECT_EQ(s.a.weights(), kAfter);
  EXPECT_EQ(w.weights(), kAfter);
}

TEST(ApexMisuse, ABlockBeforeInitializeIsRefused) {
  begin();
  Pair w;
  Optimizer opt(optim::Sgd{.lr = 0.125}, w.parameters(), scalar::no_scaler());
  expect_words(refusal([&] { amp::scale_loss(w(ones()), opt).backward(); }),
               {"E0808", "before amp::initialize", ".enabled = false"});
  w(ones()).backward();
  amp::step(opt);
  EXPECT_EQ(w.weights(), kAfter);
  for (const bool enabled : {true, false}) {  // nothing is scaled in either
    Pair other;
    auto [net, its] = amp::initialize(other, optim::Sgd{.lr = 0.125},
                                      {.enabled = enabled, .opt_level = "O0", .verbosity = 0});
    amp::scale_loss(net(ones()), its).backward();
    amp::step(its);
    EXPECT_EQ(other.weights(), kAfter);
  }
}

// --- numbers

TEST(ApexMisuse, AScaleAboveTheLargestIsNotLoaded) {
  TwoOptimizers s;
  for (const double scale : {1e30, 16777216.0 * 2})
    expect_words(refusal([&] { s.load(scale); }), {"E0814", "max_loss_scale"});
  EXPECT_EQ(s.scale(), 65536);
  s.load(16777216);
  EXPECT_EQ(s.scale(), 16777216);
  const TwoOptimizers low(plain({.max_loss_scale = 1024}));
  EXPECT_EQ(code_of([&] { low.load(2048); }), "E0814");
  const TwoOptimizers fixed(plain({.loss_scale = 128.0}));  // it is none that moves
  fixed.load(0x1p30);
  EXPECT_EQ(fixed.scale(), 0x1p30);
}

TEST(ApexMisuse, ThereAreNotAnyNumberOfLosses) {
  for (const int losses : {1025, 2'000'000'000})
    expect_words(refusal([&] { TwoOptimizers(plain({.num_losses = losses})); }),
                 {"E0711", "num_losses", "1 to 1024"});
  const TwoOptimizers most(plain({.num_losses = 1024}));
  EXPECT_EQ(amp::state_dict(most.opts[0]).loss_scalers.size(), 1024u);
}

}  // namespace
}  // namespace aloft::e2e
