// Losses that are scaled twice or by another scaler than the step's, by way of accumulate(), of
// gradients that are handed over, and of clipping: refused, in both modes, where a step would be
// too large by a loss scale. The orders that are right beside them.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager_emitter.h"
#include "frontend/grad_scaler.h"
#include "frontend/left_gradients.h"
#include "frontend/loss_scalers.h"
#include "frontend/module.h"
#include "frontend/scale_loss.h"
#include "frontend/value_and_grad.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/reduce.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

using Scaler = amp::GradScaler;

struct Line : nn::Module {
  VariablePtr w = add_parameter("w", {2}, [](float* to, std::int64_t) { to[0] = 1, to[1] = -2; });
  Tensor operator()(const Tensor& factor) const { return sum(use(w) * factor); }
};

// A step by a gradient of {1, 1}.
const std::vector<float> kBefore = {1, -2}, kAfter = {0.875f, -2.125f};

struct Rig {
  Rig() {
    use_cpu();
    eager().clear_tape();
    eager().forget_gradients();
  }
  Line model;
  Optimizer opt{optim::Sgd{.lr = 0.125}, model.parameters(), scalar::no_scaler()};
  Scaler s{{.init_scale = 1024}};
  static Tensor ones() { return full({2}, 1); }
  Tensor loss() const { return model(ones()); }
  void add(const Tensor& loss) { accumulate(loss, opt); }
  // The last micro-batch, with scaler t.
  void step(Scaler& t) {
    t.scale(loss()).backward();
    t.step(opt);
    t.update();
  }
  void expect_refused(const std::function<void()>& call, const char* words = "") const {
    expect_words(refusal(call), {"E0808", words});
    EXPECT_EQ(model.w->to_floats(), kBefore);
  }
  void expect_stepped() const { EXPECT_EQ(model.w->to_floats(), kAfter); }
};

TEST(ScaleOrders, SumsOfAScalerAreNotForAnother) {
  const char* words = "the sums of accumulate() have another loss scale";
  const std::vector<std::function<void(Rig&)>> wrong = {
      [](Rig& r) { r.add(r.s.scale(r.loss())), minimize(r.loss(), r.opt); },
      [](Rig& r) { r.add(r.s.scale(r.loss())), r.loss().backward(), amp::step(r.opt); },
      [](Rig& r) { r.add(r.loss()), r.step(r.s); },
      [](Rig& r) {
        Scaler t({.init_scale = 4});
        r.add(r.s.scale(r.loss())), r.step(t);
      },
      [](Rig& r) {
        Scaler off({.enabled = false});
        r.add(r.s.scale(r.loss())), r.step(off);
      },
      [](Rig& r) { r.add(r.s.scale(r.loss())), r.s.load_state_dict({.scale = 2}), r.step(r.s); },
      [](Rig& r) {
        r.opt.set_accumulation(3);
        r.add(r.s.scale(r.loss())), r.add(r.loss());
      },
      [](Rig& r) {
        Scaler t({.init_scale = 4});
        r.opt.set_accumulation(3);
        r.add(r.s.scale(r.loss())), r.add(t.scale(r.loss()));
      }};
  for (const auto& order : wrong) {
    Rig r;
    r.opt.set_accumulation(2);
    r.expect_refused([&] { order(r); }, words);
    r.opt.zero_grad();  // what was summed goes, and what it was scaled with
    r.opt.set_accumulation(2);
    r.add(r.loss()), minimize(r.loss(), r.opt);
    r.expect_stepped();
  }
  Rig r;
  r.opt.set_accumulation(2);
  r.expect_refused([&] { r.add(r.s.scale(r.s.scale(r.loss()))); }, "two loss scales");
}

TEST(ScaleOrders, SumsOfOneScalerAreStepped) {
  Rig r;
  r.opt.set_accumulation(2);
  r.add(r.s.scale(r.loss())), r.step(r.s);
  r.expect_stepped();
  r.add(r.s.scale(r.loss())), r.step(r.s);  // and once more
  r.opt.zero_grad();
  r.add(r.loss());
  r.loss().backward();
  EXPECT_FALSE(amp::step(r.opt).skipped());
  Line model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.125}, "O1:fp16");
  opt.set_accumulation(2);
  Scaler own(opt);
  accumulate(model(Rig::ones()), opt);
  own.scale(model(Rig::ones())).backward();
  EXPECT_FALSE(own.step(opt).skipped());
  EXPECT_EQ(model.w->to_floats(), kAfter);
}

// Each run of a program adds to what is known, whichever was traced first.
TEST(ScaleOrders, SumsOfProgramsAreKnown) {
  Rig r;
  r.opt.set_accumulation(2);
  auto plain = compile([&](const Tensor& x) { return accumulate(r.model(x), r.opt); });
  auto scaled = compile([&](const Tensor& x) { return accumulate(r.s.scale(r.model(x)), r.opt); });
  auto step = compile([&](const Tensor& x) { return minimize(r.model(x), r.opt); });
  plain(Rig::ones()), step(Rig::ones());
  r.expect_stepped();
  scaled(Rig::ones());
  expect_words(refusal([&] { step(Rig::ones()); }), {"E0808", "the sums of accumulate()"});
  r.expect_stepped();
  r.step(r.s);  // that of the scaler still may
  r.opt.set_accumulation(2);
  scaled(Rig::ones());
  auto drop = compile([&](const Tensor& x) {
    r.opt.zero_grad();
    return x * 1.0;
  });
  drop(Rig::ones());
  plain(Rig::ones()), step(Rig::ones());
}

TEST(ScaleOrders, ALossIsScaledOnce) {
  {
    Rig r;
    r.s.scale(r.s.scale(r.loss())).backward();
    r.expect_refused([&] { r.s.step(r.opt); }, "multiplied twice");
    r.expect_refused([&] { r.s.unscale_(r.opt); }, "multiplied twice");
    r.opt.zero_grad();
    // Of a sum each part once.
    (r.s.scale(r.loss()) + r.s.scale(0.0 * r.loss())).backward();
    r.s.step(r.opt);
    r.expect_stepped();
  }
  Line model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.125}, "O1:fp16");
  Scaler own(opt);
  const auto both = [&model = model, &opt = opt, &own] {
    auto scaled = amp::scale_loss(model(Rig::ones()), opt);
    own.scale(scaled).backward();
    scaled.end();
  };
  expect_words(refusal(both), {"E0808", "multiplied twice"});
  EXPECT_EQ(model.w->to_floats(), kBefore);
}

// A penalty on gradients, as PyTorch's page on scalers has it: scaled, divided by a number, and
// scaled again with the loss.
TEST(ScaleOrders, GradientsOfGradientsAreScaledAgain) {
  Rig r;
  const auto f = [&](const Tensor& x) { return r.s.scale(r.model(x)); };
  const auto [l, scaled] = value_and_grad(f, GradPosition{0})(Rig::ones());
  const Tensor penalty = sum(scaled[0] * (1.0 / r.s.get_scale()));  // w itself
  r.s.scale(r.loss() + 0.0 * penalty).backward();
  EXPECT_FALSE(r.s.step(r.opt).skipped());
  r.expect_stepped();
}

TEST(ScaleOrders, GradientsThatAreHandedOverHaveTheStepsScale) {
  const char* words = "another loss scale than the step's";
  const auto gradients = [](Rig& r, const Tensor& x) {
    return gradients_of(r.s.scale(r.model(x)), {r.model.w});
  };
  {
    Rig r;
    r.expect_refused([&] { apply_gradients(r.loss(), gradients(r, Rig::ones()), r.opt); }, words);
    r.expect_refused(
        [&] { update_parameters(r.loss(), scaled_gradients(r.s.scale(r.loss()), r.opt), r.opt); },
        words);
    auto compiled = compile(
        [&](const Tensor& x) { return apply_gradients(r.model(x), gradients(r, x), r.opt); });
    r.expect_refused([&] { compiled(Rig::ones()); }, words);
    // What the loop has divided is its own to know.
    std::vector<Tensor> divided;
    for (const Tensor& g : gradients(r, Rig::ones())) divided.push_back(g * (1.0 / 1024));
    apply_gradients(r.loss(), divided, r.opt);
    r.expect_stepped();
  }
  {
    Rig r;
    const amp::DynamicLossScaler scaler(1024, 2, 50);
    auto compiled = compile([&](const Tensor& x) {
      const Tensor l = r.model(x);
      return apply_gradients(l, scaler.unscale(gradients_of(scaler.scale(l), {r.model.w})), r.opt);
    });
    compiled(Rig::ones());
    r.expect_stepped();
  }
  Line model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.125}, "O1:fp16");
  Scaler own(opt);
  const auto l = [&model = model] { return model(Rig::ones()); };
  const auto twice = [&, &opt = opt] {
    apply_gradients(l(), scaled_gradients(own.scale(l()), opt), opt);
  };
  expect_words(refusal(twice), {"E0808", words, "besides"});
  apply_gradients(l(), gradients_of(own.scale(l()), {model.w}), opt);  // its own, once
  EXPECT_EQ(model.w->to_floats(), kAfter);
}

TEST(ScaleOrders, WhatALossScaleIsInIsNotClipped) {
  {
    Rig r;
    r.s.scale(r.loss()).backward();
    for (const auto& text : {refusal([&] { clip_grad_norm_(r.model.parameters(), 1); }),
                             refusal([&] { clip_grad_value_(r.model.parameters(), 1); })})
      expect_words(text, {"E0808", "that a loss scale is in", "scaler.unscale_(optimizer) first"});
    r.s.unscale_(r.opt);
    EXPECT_FLOAT_EQ(static_cast<float>(clip_grad_norm_(r.model.parameters(), 100).item()),
                    std::sqrt(2.0f));
    r.s.step(r.opt);
    r.expect_stepped();
  }
  {
    Rig r;  // a loop that divides by itself
    const amp::StaticLossScaler by_hand(8);
    by_hand.scale(r.loss()).backward();
    set_grad(r.model.w, by_hand.unscale(grad_of(r.model.w)));
    clip_grad_norm_(r.model.parameters(), 100);
    amp::step(r.opt);
    r.expect_stepped();
  }
  for (const bool enabled : {true, false}) {
    Line model;
    amp::Options options{.opt_level = "O1"};
    options.enabled = enabled, options.verbosity = 0;
    auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.125}, options);
    const auto clip = [&model = model] { clip_grad_norm_(model.parameters(), 100); };
    {
      auto scaled = amp::scale_loss(model(Rig::ones()), opt);
      scaled.backward();
      EXPECT_EQ(code_of(clip), enabled ? "E0808" : "");
    }
    clip();
    amp::step(opt);
    EXPECT_EQ(model.w->to_floats(), kAfter);
  }
}

// The advice is a call that leads on.
TEST(ScaleOrders, AStepWithoutGradientsSaysWhichCallIsMissing) {
  Rig r;
  const std::string plain = refusal([&] { amp::step(r.opt); });
  expect_words(plain, {"E0808", "call loss.backward() first"});
  EXPECT_EQ(plain.find("scale"), std::string::npos) << plain;
  const std::string scaled = refusal([&] { r.s.step(r.opt); });
  expect_words(scaled, {"E0808", "call scaler.scale(loss).backward() first"});
  EXPECT_EQ(scaled.find("scale_loss"), std::string::npos) << scaled;
  Line model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.125}, "O1:fp16");
  expect_words(refusal([&, &opt = opt] { amp::step(opt); }),
               {"E0808", "amp::scale_loss(loss, optimizer).backward()"});
  r.loss().backward();
  amp::step(r.opt);
  r.expect_stepped();
}

}  // namespace
}  // namespace aloft::e2e
