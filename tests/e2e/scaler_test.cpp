// The loss scaler inside real training steps: its state follows scalar::next step by step, and a
// step with one infinite gradient is skipped whole, at every level, in both modes, and named.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "optim/adamw.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kFeatures = 6, kHidden = 8, kClasses = 3, kBatch = 4;

// One gradient can be made infinite from outside: the loss gains side.weight * poison, whose
// gradient is the poison itself. While it is zero it changes nothing.
struct Poisonable : nn::Module {
  nn::Linear up{*this, "up", kFeatures, kHidden}, down{*this, "down", kHidden, kClasses};
  nn::Linear side{*this, "side", 1, 1, {.bias = false}};
};

struct Step {
  std::string variables;  // the bytes of everything but the scaler and the random state
  double lr = 0, loss_scale = 0;
  std::int64_t applied = 0;
  int culprit = -1;
  bool skipped = false;
  scalar::ScalerState scaler;
};

template <class T>
T value_of(const VariablePtr& v) {
  T t;
  t = v->buffer->read_one<decltype(t)>();
  return t;
}

struct Result {
  std::vector<Step> steps;
  std::vector<std::string> backward_names;
  scalar::ScalerRule rule;
};

Result train_poisoned(Mode mode, const std::string& precision, int count,
                      const std::function<float(int)>& poison) {
  use_cpu();
  eager().clear_tape();
  omp_set_num_threads(2);
  manual_seed(6);
  Poisonable model;
  scalar::ScheduleRule falling;
  falling.kind = scalar::ScheduleKind::Linear;
  falling.total = 40;
  auto [net, opt] =
      amp::initialize(model, optim::AdamW{.lr = 1e-2, .schedule = falling}, precision);
  auto one = [&, &opt = opt](const Tensor& x, const Tensor& label, const Tensor& p) {
    ModuleScope scope("", model.policy());
    const Tensor main = cross_entropy(model.down(gelu(model.up(x))), label);
    return minimize(main + sum(model.side(p)), opt);
  };
  auto compiled = compile(one, {.name = "step", .partial_batches = false, .threads = 2});
  Result result{{}, culprit_names(opt), opt.scaler()};
  for (int i = 1; i <= count; ++i) {
    std::vector<float> x;
    std::vector<std::int32_t> label;
    for (int k = 0; k < kBatch * kFeatures; ++k) x.push_back(std::sin(i * 3.0f + k * 0.7f));
    for (int k = 0; k < kBatch; ++k) label.push_back((i + k) % kClasses);
    const Tensor tx = from_floats(x, {kBatch, kFeatures}), tl = from_ints(label, {kBatch}),
                 tp = from_floats({poison(i)}, {1, 1});
    const StepResult r = mode == Mode::Eager ? one(tx, tl, tp) : compiled(tx, tl, tp);
    Step s;
    s.lr = r.learning_rate.item();
    s.loss_scale = r.loss_scale.item();
    s.culprit = static_cast<int>(r.culprit.item());
    s.skipped = r.skipped();
    s.applied = value_of<std::int64_t>(opt.applied);
    s.scaler = {value_of<float>(opt.scale), value_of<std::int32_t>(opt.good_steps),
                value_of<std::int32_t>(opt.overflow_run), value_of<std::int64_t>(opt.skipped)};
    for (const VariablePtr& v : model.parameters()) s.variables += bytes_of(*v);
    for (std::size_t p = 0; p < opt.parameters().size(); ++p) {
      if (opt.master(p)) s.variables += bytes_of(*opt.master(p));
      for (std::size_t k = 0; k < 2; ++k) s.variables += bytes_of(*opt.moment(k, p));
    }
    result.steps.push_back(std::move(s));
  }
  return result;
}

class Scaler : public testing::TestWithParam<const char*> {};

TEST_P(Scaler, AnInfiniteGradientSkipsItsStepWholeAndIsNamed) {
  constexpr int kPoisoned = 7, kSteps = 12;
  const auto poison = [](int step) {
    return step == kPoisoned ? std::numeric_limits<float>::infinity() : 0.0f;
  };
  for (Mode mode : {Mode::Eager, Mode::Compiled}) {
    const Result r = train_poisoned(mode, GetParam(), kSteps, poison);
    for (int i = 1; i <= kSteps; ++i) {
      const Step& now = r.steps[i - 1];
      EXPECT_EQ(now.skipped, i == kPoisoned) << i;
      EXPECT_EQ(now.applied, i < kPoisoned ? i : i - 1) << i;
      if (i == 1) continue;
      const Step& before = r.steps[i - 2];
      if (i == kPoisoned) {
        ASSERT_GE(now.culprit, 0);
        EXPECT_EQ(r.backward_names.at(now.culprit), "side.weight");
        EXPECT_TRUE(now.variables == before.variables) << "a skipped step changed something";
        EXPECT_EQ(now.scaler.skipped, 1);
      } else {
        EXPECT_EQ(now.culprit, -1) << i;
        EXPECT_FALSE(now.variables == before.variables) << i;
      }
    }
    // The schedule waits: the step after the skipped one has the rate that it should have had.
    EXPECT_EQ(r.steps[kPoisoned].lr, r.steps[kPoisoned - 1].lr);
    EXPECT_LT(r.steps[kPoisoned].lr, r.steps[kPoisoned - 2].lr);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Levels, Scaler,
    // From 2^16 the poisoned part's own gradient, the scale itself, would not fit fp16.
    testing::Values("O0", "O1:fp16 loss_scale=dynamic(init=1024)", "O1:bf16",
                    "O2:fp16 loss_scale=dynamic(init=1024)", "O2:fp16 loss_scale=fixed", "O2:bf16",
                    "O3:fp16", "O3:bf16", "O3:fp16 loss_scale=fixed",
                    "O2:bf16 backward=fp16 loss_scale=dynamic(init=1024)"),
    [](const auto& info) {
      std::string name = info.param;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

// Growth, ceiling, backing off and floor, with intervals short enough to see them all.
TEST(ScalerSequence, FollowsTheSpecificationStepByStep) {
  const char* const precisions[] = {
      "O1:fp16 loss_scale=dynamic(init=8,growth_interval=3,max=32,min=2)",
      "O2:fp16 loss_scale=dynamic(init=8,growth_interval=3,max=32,min=2)",
      "O2:fp16 loss_scale=fixed", "O2:bf16"};
  const auto overflows = [](int i) { return (i >= 14 && i <= 19) || i == 25 || i == 31; };
  for (const char* precision : precisions)
    for (Mode mode : {Mode::Eager, Mode::Compiled}) {
      const Result r = train_poisoned(mode, precision, 36, [&](int i) {
        return overflows(i) ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
      });
      scalar::ScalerState expected = scalar::initial_state(r.rule);
      float highest = 0, lowest = expected.scale;
      for (int i = 1; i <= 36; ++i) {
        EXPECT_EQ(r.steps[i - 1].loss_scale, expected.scale) << precision << " step " << i;
        expected = scalar::next(expected, !overflows(i), r.rule);
        EXPECT_TRUE(r.steps[i - 1].scaler == expected) << precision << " step " << i;
        highest = std::max(highest, expected.scale);
        lowest = std::min(lowest, expected.scale);
      }
      EXPECT_EQ(expected.skipped, 8);
      if (r.rule.kind == scalar::ScalerKind::Dynamic) {
        EXPECT_EQ(highest, 32);
        EXPECT_EQ(lowest, 2);
      }
    }
}

}  // namespace
}  // namespace aloft::e2e
