// amp::GradScaler in loops: the order of its calls, what it takes and keeps, and gradients that a
// loop looks at and changes before a step.
#include "frontend/grad_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/left_gradients.h"
#include "models/mlp.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "optim/adamw.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kFeatures = 12, kClasses = 5, kRows = 9;

Batch batch(int step) {
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < kRows * kFeatures; ++i)
    values.push_back(static_cast<float>((i * 37 + step * 101) % 19 - 9) / 7);
  for (std::int64_t r = 0; r < kRows; ++r)
    labels.push_back(static_cast<std::int32_t>((r * 3 + step) % kClasses));
  return {from_floats(values, {kRows, kFeatures}), from_ints(labels, {kRows})};
}

// A model in fp16 without a loss scale of its own.
struct Training {
  Training() = default;
  struct Start {
    Start() { use_cpu(), manual_seed(2); }
  } start;
  models::Mlp model{{kFeatures, 24, kClasses}};
  std::pair<amp::Net<models::Mlp>, Optimizer> both =
      amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O1:fp16 loss_scale=none");
  Optimizer& opt = both.second;
  Tensor loss(int step) {
    const Batch b = batch(step);
    return cross_entropy(both.first(b.x), b.label);
  }
};

TEST(GradScaler, RefusesCallsOutOfTurn) {
  Training run;
  amp::GradScaler scaler({.init_scale = 1024});
  EXPECT_EQ(code_of([&] { scaler.update(); }), "E0808");
  EXPECT_EQ(code_of([&] { scaler.step(run.opt); }), "E0808");  // no gradients
  scaler.scale(run.loss(0)).backward();
  scaler.unscale_(run.opt);
  EXPECT_EQ(code_of([&] { scaler.unscale_(run.opt); }), "E0808");
  scaler.step(run.opt);
  scaler.scale(run.loss(1)).backward();
  EXPECT_EQ(code_of([&] { scaler.step(run.opt); }), "E0808");
  EXPECT_EQ(code_of([&] { scaler.unscale_(run.opt); }), "E0808");
  scaler.update();
  EXPECT_FALSE(scaler.step(run.opt).skipped());
  scaler.update();
  run.loss(2).backward();  // not scaled
  EXPECT_EQ(code_of([&] { scaler.step(run.opt); }), "E0808");
  EXPECT_EQ(code_of([&] { scaler.step(run.loss(0)); }), "E0808");  // made for no optimizer
}

// What PyTorch takes without a word and divides wrongly.
TEST(GradScaler, RefusesGradientsOfAnotherScale) {
  Training run;
  amp::GradScaler scaler({.init_scale = 1024});
  const auto left = [&](int step) { scaler.scale(run.loss(step)).backward(); };
  left(0);
  scaler.update(8.0);
  expect_words(refusal([&] { scaler.step(run.opt); }), {"E0808", "moved since"});
  run.opt.zero_grad();
  left(1);
  scaler.load_state_dict({.scale = 64});
  EXPECT_EQ(code_of([&] { scaler.unscale_(run.opt); }), "E0808");
  scaler.load_state_dict({.scale = 8});  // two writes: the gradients' is no longer known
  EXPECT_EQ(code_of([&] { scaler.unscale_(run.opt); }), "E0808");
  run.opt.zero_grad();
  left(2);
  scaler.update(8.0);  // the value that it has
  scaler.unscale_(run.opt);
  left(3);
  expect_words(refusal([&] { scaler.step(run.opt); }), {"E0808", "behind unscale_()"});
  run.opt.zero_grad();
  left(4);
  EXPECT_EQ(code_of([&] { scaler.step(run.opt); }), "E0808");  // nothing divides these either
  scaler.update();
  const StepResult r = scaler.step(run.opt);
  EXPECT_FALSE(r.skipped());
  EXPECT_EQ(r.loss_scale.item(), 8);
}

TEST(GradScaler, TellsTheScaleOfAStepThatWasDividedBefore) {
  Training run;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(run.loss(0)).backward();
  scaler.unscale_(run.opt);
  EXPECT_EQ(scaler.step(run.opt).loss_scale.item(), 1024);
}

TEST(GradScaler, OneParameterOfTwoOptimizersIsDividedOnce) {
  Training run;
  Optimizer other(optim::Sgd{}, run.model.parameters(), scalar::no_scaler());
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(run.loss(0)).backward();
  scaler.unscale_(run.opt);
  expect_words(refusal([&] { scaler.unscale_(other); }), {"E0808", "divided by the loss scale"});
}

TEST(GradScaler, RefusesNumbersOutOfRange) {
  use_cpu();
  for (const amp::GradScalerOptions& o :
       {amp::GradScalerOptions{.init_scale = 0}, amp::GradScalerOptions{.init_scale = NAN},
        amp::GradScalerOptions{.growth_factor = 1}, amp::GradScalerOptions{.backoff_factor = 1},
        amp::GradScalerOptions{.growth_interval = 0}})
    EXPECT_EQ(code_of([&] { amp::GradScaler scaler(o); }), "E0814");
  amp::GradScaler scaler;
  EXPECT_EQ(code_of([&] { scaler.set_growth_factor(0.5); }), "E0814");
  EXPECT_EQ(code_of([&] { scaler.load_state_dict({.scale = -1}); }), "E0814");
  EXPECT_EQ(scaler.state_dict(), amp::GradScalerState());
  for (const char* text : {"", "[]", "{\"scale\": 1}", "{\"scale\": \"a\"}"})
    EXPECT_EQ(code_of([&] { amp::GradScalerState::parse(text); }), "E0832") << text;
}

// As torch's: without a scale there is nothing to save, to check or to be out of turn with.
TEST(GradScaler, ThatIsNotEnabledHasNoState) {
  Training run;
  amp::GradScaler off({.enabled = false}), on;
  EXPECT_EQ(off.state_dict().str(), "{}");
  EXPECT_EQ(code_of([&] { on.load_state_dict(amp::GradScalerState::parse("{}")); }), "E0832");
  off.load_state_dict(on.state_dict());
  EXPECT_EQ(off.get_scale(), 1);
  off.update();
  off.scale(run.loss(0)).backward();
  off.unscale_(run.opt);
  off.unscale_(run.opt);
  EXPECT_FALSE(off.step(run.opt).skipped());
  off.update();
  on.update(128);
  EXPECT_EQ(on.get_scale(), 128);
}

// What a step would divide by 1 or by the scale, and nobody could say which.
TEST(GradScaler, UnscalesFrozenParametersAndRefusesSums) {
  Training run;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(run.loss(0)).backward();
  const VariablePtr p = run.model.parameters()[0];
  const std::vector<float> scaled = grad_of(p).to_floats();
  p->requires_grad = false;
  scaler.unscale_(run.opt);
  p->requires_grad = true;
  EXPECT_EQ(grad_of(p).to_floats()[0], scaled[0] / 1024);
  scaler.step(run.opt);
  scaler.update();
  run.opt.set_accumulation(2);
  accumulate(scaler.scale(run.loss(1)), run.opt);
  scaler.scale(run.loss(2)).backward();
  EXPECT_EQ(code_of([&] { scaler.unscale_(run.opt); }), "E0808");
  auto traced = compile([&](const Tensor& x) { return x * scaler.get_scale(); });
  EXPECT_EQ(code_of([&] { traced(from_floats({1}, {1})); }), "E0305");
}

TEST(GradScaler, ReadsWhatPythonWrites) {
  const auto s = amp::GradScalerState::parse(
      R"({"scale": 32768.0, "growth_factor": 2.0, "backoff_factor": 0.5,)"
      R"( "growth_interval": 2000, "_growth_tracker": 7})");
  EXPECT_EQ(s, (amp::GradScalerState{.scale = 32768, .growth_tracker = 7}));
  EXPECT_EQ(amp::GradScalerState::parse(s.str()), s);
  std::string text = s.str();
  text.replace(text.find("2000"), 4, "2.5");
  EXPECT_EQ(code_of([&] { amp::GradScalerState::parse(text); }), "E0832");
}

// What amp::initialize scales is scaled once.
TEST(GradScaler, OfAnotherScaleIsRefused) {
  use_cpu();
  models::Mlp model({kFeatures, 24, kClasses});
  auto [net, opt] = amp::initialize(model, optim::AdamW{}, "O1:fp16");
  const Batch b = batch(0);
  amp::GradScaler other, own(opt);
  own.scale(cross_entropy(net(b.x), b.label)).backward();
  EXPECT_EQ(code_of([&, &opt = opt] { other.step(opt); }), "E0808");
  EXPECT_FALSE(own.step(opt).skipped());
  own.update();
}

// With unscale_() before it a step has the bits that it has without.
TEST(GradScaler, UnscalingFirstChangesNoBit) {
  std::vector<std::map<std::string, std::string>> states;
  for (const bool first : {false, true}) {
    Training run;
    amp::GradScaler scaler({.init_scale = 4096, .growth_interval = 3});
    for (int i = 0; i < 8; ++i) {
      scaler.scale(run.loss(i)).backward();
      if (first) scaler.unscale_(run.opt);
      EXPECT_FALSE(scaler.step(run.opt).skipped());
      scaler.update();
    }
    EXPECT_EQ(scaler.get_scale(), 16384);
    states.push_back(state_of(run.model, run.opt));
  }
  EXPECT_EQ(states[0], states[1]);
}

TEST(Gradients, AreReplacedAndClipped) {
  Training run;
  run.loss(0).backward();
  const VariablePtr p = run.model.parameters()[0];
  const double before = clip_grad_norm_(run.model.parameters(), 1e6).item();
  EXPECT_GT(before, 0);
  EXPECT_NEAR(clip_grad_norm_(run.model.parameters(), 0.25).item(), before, 1e-5 * before);
  EXPECT_NEAR(clip_grad_norm_(run.model.parameters(), 1e6).item(), 0.25, 1e-5);
  clip_grad_value_(run.model.parameters(), 0.01);
  for (const float g : grad_of(p).to_floats()) EXPECT_LE(std::abs(g), 0.01f);
  set_grad(p, full(p->type.shape, 2.0));
  for (const float g : grad_of(p).to_floats()) EXPECT_EQ(g, 2);
  EXPECT_EQ(code_of([&] { set_grad(p, full({3}, 2.0)); }), "E0807");
  EXPECT_EQ(code_of([&] { clip_grad_norm_({p}, 0); }), "E0814");
  run.model.zero_grad();
  EXPECT_EQ(code_of([&] { set_grad(p, full(p->type.shape, 2.0)); }), "E0808");
  auto traced = compile([&](const Tensor& x) {
    clip_grad_norm_({p}, 1);
    return x;
  });
  EXPECT_EQ(code_of([&] { traced(from_floats({1}, {1})); }), "E0305");
}

// The norm of two models' gradients clips both: the two halves of clip_grad_norm_() over all of
// them, bit for bit, and each half alone.
TEST(Gradients, AreClippedByANormOfSeveralModels) {
  const auto gradients_of = [](const std::vector<VariablePtr>& parameters) {
    std::vector<Tensor> all;
    for (const VariablePtr& p : parameters) all.push_back(grad_of(p));
    return all;
  };
  std::vector<std::vector<float>> ends[2];
  for (const bool halves : {false, true}) {
    Training a, b;
    a.loss(0).backward();
    (b.loss(1) * 3.0).backward();
    std::vector<VariablePtr> both = a.model.parameters();
    for (const VariablePtr& p : b.model.parameters()) both.push_back(p);
    if (halves) {
      std::vector<Tensor> all = gradients_of(both);
      all.push_back(Tensor());  // as grad_of() of what no loss depends on
      const Tensor norm = get_total_norm(all);
      EXPECT_GT(norm.item(), get_total_norm(gradients_of(a.model.parameters())).item());
      clip_grads_with_norm_(a.model.parameters(), 0.25, norm);
      clip_grads_with_norm_(b.model.parameters(), 0.25, norm);
      EXPECT_NEAR(get_total_norm(gradients_of(both)).item(), 0.25, 1e-5);
    } else {
      clip_grad_norm_(both, 0.25);
    }
    for (const Tensor& g : gradients_of(both)) ends[halves].push_back(g.to_floats());
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST(Gradients, AreClippedByNumbersAlone) {
  Training run;
  run.loss(0).backward();
  const std::vector<VariablePtr> parameters = run.model.parameters();
  const auto clip_by = [&](const Tensor& norm) { clip_grads_with_norm_(parameters, 1, norm); };
  EXPECT_EQ(get_total_norm({}).item(), 0);
  EXPECT_EQ(get_total_norm({full({4}, 3.0), full({7}, 2.0)}).item(), 8);
  EXPECT_EQ(code_of([] { get_total_norm({full({2}, 1, DType::I32)}); }), "E0203");
  EXPECT_EQ(code_of([&] { clip_by(full({1}, 2.0)); }), "E0203");
  EXPECT_EQ(code_of([&] { clip_by(full(Shape{}, 2, DType::I32)); }), "E0203");
  EXPECT_EQ(code_of([&] { clip_by(Tensor()); }), "E0203");
  EXPECT_EQ(code_of([&] { clip_grads_with_norm_(parameters, 0, full(Shape{}, 2.0)); }), "E0814");
  const std::vector<float> before = grad_of(parameters[0]).to_floats();
  clip_by(full(Shape{}, 0.5));  // below the limit: as they are
  EXPECT_EQ(grad_of(parameters[0]).to_floats(), before);
  clip_by(full(Shape{}, std::numeric_limits<double>::infinity()));
  for (const float g : grad_of(parameters[0]).to_floats()) EXPECT_TRUE(std::isnan(g));
}

}  // namespace
}  // namespace aloft::e2e
