// Blocks of amp::scale_loss over several losses, optimizers and models, against scales and weights
// of apex's rule; apex's states, functions that run in a type.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoints.h"
#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/amp_state.h"
#include "frontend/cast_functions.h"
#include "frontend/left_gradients.h"
#include "frontend/scale_loss.h"
#include "models/mlp.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/unary.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "parity/parity_row.h"
#include "temporary_folder.h"

namespace aloft::e2e {
namespace {

using amp::Options;
using nlohmann::json;

constexpr std::int64_t kFeatures = 12, kClasses = 5, kRows = 9;

struct Batches {
  Tensor x, label;
  explicit Batches(int step) {
    std::vector<float> values;
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < kRows * kFeatures; ++i)
      values.push_back(static_cast<float>((i * 37 + step * 101) % 19 - 9) / 7);
    for (std::int64_t r = 0; r < kRows; ++r) labels.push_back((r * 3 + step) % kClasses);
    x = from_floats(values, {kRows, kFeatures});
    label = from_ints(labels, {kRows});
  }
};

void begin() {
  use_cpu();
  eager().clear_tape();
  eager().forget_gradients();
  manual_seed(2);
}

json read(const char* path) {
  std::ifstream file(path);
  return json::parse(file);
}

Options quiet(Options o) {
  o.verbosity = 0;
  return o;
}

template <class Precision, class Step>
std::map<std::string, std::string> after(const Precision& precision, Step step) {
  begin();
  models::Mlp model({kFeatures, 24, kClasses});
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2, .clip_norm = 0.5}, precision);
  for (int i = 0; i < 12; ++i) {
    const Batches b(i);
    step(net, opt, b.x, b.label);
  }
  return state_of(model, opt);
}

TEST(Apex, ALoopHasTheBitsOfMinimize) {
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    const auto plain = after(
        std::string_view(level + std::string(":fp16")),
        [](auto& net, auto& opt, Tensor x, Tensor y) { minimize(cross_entropy(net(x), y), opt); });
    const auto apex =
        after(quiet({.opt_level = level}), [](auto& net, auto& opt, Tensor x, Tensor y) {
          opt.zero_grad();
          const Tensor loss = cross_entropy(net(x), y);
          {
            auto scaled_loss = amp::scale_loss(loss, opt);
            scaled_loss.backward();
          }
          const StepResult r = amp::step(opt);
          EXPECT_EQ(r.loss(), loss.item());
        });
    EXPECT_EQ(plain, apex) << level;
  }
}

// What a step with an infinite input says, and the step behind it, which is finite.
template <class Step>
std::string said_of_overflow(int verbosity, Step step) {
  begin();
  models::Mlp model({kFeatures, 24, kClasses});
  ::testing::internal::CaptureStderr();
  auto [net, opt] =
      amp::initialize(model, optim::Sgd{.lr = 1e-2},
                      Options{.opt_level = "O2", .num_losses = 2, .verbosity = verbosity});
  const Batches b(1);
  const std::string before = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(before.empty(), verbosity == 0);
  ::testing::internal::CaptureStderr();
  step(net, opt, b.x * HUGE_VAL, b.label);
  step(net, opt, b.x, b.label);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Apex, VerbositySaysAnOverflowInALine) {
  const auto block = [](auto& net, auto& opt, const Tensor& x, const Tensor& y) {
    amp::scale_loss(cross_entropy(net(x), y), opt, {.loss_id = 1}).backward();
    amp::step(opt);
  };
  EXPECT_EQ(said_of_overflow(1, block),
            "amp: gradients of loss 1 are not finite: their step is skipped, its scale is 32768 "
            "from here on\n");
  EXPECT_EQ(said_of_overflow(0, block), "");
  const auto compiled = [](auto& net, auto& opt, const Tensor& x, const Tensor& y) {
    auto step =
        compile([&](Tensor a, Tensor b) { return minimize(cross_entropy(net(a), b), opt); });
    step(x, y);
  };
  EXPECT_EQ(said_of_overflow(1, compiled),
            "amp: gradients of loss 0 are not finite: their step is skipped, its scale is 32768 "
            "from here on\n");
  EXPECT_EQ(said_of_overflow(0, compiled), "");
}

struct Two {
  Tensor logits;
  std::vector<Tensor> more;
  static constexpr auto parts() {
    return std::tuple{part("logits", &Two::logits), part("more", &Two::more)};
  }
};

struct GivesTwo : nn::Module {
  nn::Linear up{*this, "up", 4, 4};
  Two operator()(Operand x) const {
    const Tensor y = up(x);
    return {y, {y * 2.0, from_ints({1}, {1})}};
  }
};

TEST(Apex, ANetCastsWhatItsModelGives) {
  begin();
  for (const DType type : {DType::F32, DType::F16, DType::BF16}) {
    GivesTwo model;
    const auto net = amp::initialize(
        model, quiet({.opt_level = "O2", .cast_model_outputs = type, .verbosity = 0}));
    const Two r = net(full({2, 4}, 1));
    EXPECT_EQ(r.logits.dtype(), type);
    EXPECT_EQ(r.more[0].dtype(), type);
    EXPECT_EQ(r.more[1].dtype(), DType::I32);
  }
  GivesTwo model;
  EXPECT_EQ(amp::initialize(model, quiet({.opt_level = "O2"}))(full({2, 4}, 1)).logits.dtype(),
            DType::F32);
}

// Scripts of apex go on with the name that the model had.
struct Stack : nn::Module {
  nn::Linear up{*this, "up", 4, 8}, down{*this, "down", 8, 3};
  Tensor operator()(Operand x) const { return down(relu(up(x))); }
};

TEST(Apex, AModelThatIsCalledItselfHasItsPrecision) {
  for (const char* level : {"O1", "O2", "O3", "O2:bf16"}) {
    begin();
    Stack model;
    auto compiled = compile([&](const Tensor& t) { return model(t); });
    const Tensor x = full({2, 4}, 1);
    EXPECT_EQ(compiled(x).dtype(), DType::F32);
    auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.125},
                                      quiet({.opt_level = level, .loss_scale = 8}));
    const DType low = std::string(level) == "O2:bf16" ? DType::BF16 : DType::F16;
    const std::vector<float> by_net = net(x).to_floats();
    for (const Tensor& y : {model(x), compiled(x)}) {
      EXPECT_EQ(y.dtype(), low) << level;
      EXPECT_EQ(y.to_floats(), by_net) << level;
    }
    EXPECT_EQ(model.up(x).dtype(), low) << level;
    amp::scale_loss(cross_entropy(model(x), from_ints({0, 2}, {2})), opt).backward();
    EXPECT_FALSE(amp::step(opt).skipped());
    EXPECT_NE(net(x).to_floats(), by_net) << level;
    const amp::disable_casts off;  // of what a prepared model computes nothing
    EXPECT_EQ(net(x).dtype(), level == std::string("O1") ? low : DType::F32);
    EXPECT_TRUE(level != std::string("O1") || model(x).dtype() == DType::F32);
  }
}

TEST(Apex, WhatIsNotEnabledStaysAsItIs) {
  begin();
  models::Mlp model({kFeatures, 24, kClasses});
  auto [net, opt] =
      amp::initialize(model, optim::Sgd{.lr = 0.1}, Options{.enabled = false, .opt_level = "O2"});
  for (const VariablePtr& p : model.parameters()) EXPECT_EQ(p->type.dtype, DType::F32);
  EXPECT_FALSE(static_cast<bool>(model.policy()));
  const Batches b(0);
  const Tensor loss = cross_entropy(net(b.x), b.label);
  const auto scaled = amp::scale_loss(loss, opt);
  EXPECT_EQ(scaled.item(), loss.item());
  scaled.backward();
}

// --- several losses, optimizers, models

struct Pair : nn::Module {
  VariablePtr w = add_parameter("w", {2}, [](float* to, std::int64_t) { to[0] = 1, to[1] = -2; });
  Tensor operator()(const Tensor& factor) const { return sum(use(w) * factor); }
};

Tensor factor_of(const json& numbers) {
  std::vector<float> factor;
  for (const json& x : numbers) factor.push_back(std::stof(x.get<std::string>()));
  return from_floats(factor, {2});
}

Options options_of(const json& o) {
  Options options{.opt_level = "O1", .patch_torch_functions = false};
  const json& scale = o.at("loss_scale");
  options.loss_scale = scale.is_string() ? amp::LossScale("dynamic") : scale.get<double>();
  options.num_losses = o.at("num_losses");
  options.dynamic_init_scale = o.value("dynamic_init_scale", options.dynamic_init_scale);
  options.scale_growth_factor = o.value("scale_growth_factor", options.scale_growth_factor);
  options.scale_backoff_factor = o.value("scale_backoff_factor", options.scale_backoff_factor);
  options.scale_window = o.value("scale_window", options.scale_window);
  if (o.contains("min_loss_scale")) options.min_loss_scale = o.at("min_loss_scale").get<double>();
  options.max_loss_scale = o.value("max_loss_scale", options.max_loss_scale);
  return quiet(options);
}

class ApexLosses : public testing::TestWithParam<json> {};

TEST_P(ApexLosses, KeepTheScalesAndWeightsOfApex) {
  begin();
  const json& c = GetParam();
  Pair a, b;
  const Options options = options_of(c.at("options"));
  auto [nets, opts] =
      amp::initialize(std::tie(a, b), {optim::Sgd{.lr = 0.125}, optim::Sgd{.lr = 0.125}}, options);
  ASSERT_EQ(opts.size(), 2u);
  const json& steps = c.at("steps");
  ASSERT_GE(steps.size(), 10u);
  const auto name = c.at("name").get<std::string>();
  parity::ParityRow scales("scaler", "apex's losses, " + name + ": scales", 0);
  parity::ParityRow weights("scaler", "apex's losses, " + name + ": weights", 0);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string where = "step " + std::to_string(i);
    std::set<std::size_t> used;
    for (const json& block : steps[i]) {
      Tensor loss;
      std::vector<Optimizer> its;
      for (std::size_t k = 0; k < 2; ++k) {
        if (block.at("gradients")[k].is_null()) continue;
        const Tensor factor = factor_of(block.at("gradients")[k]);
        const Tensor part = k == 0 ? std::get<0>(nets)(factor) : std::get<1>(nets)(factor);
        loss = loss.is_defined() ? loss + part : part;
        its.push_back(opts[k]);
        used.insert(k);
      }
      amp::scale_loss(loss, its,
                      {.loss_id = block.at("loss_id").get<std::size_t>(),
                       .delay_unscale = block.value("delay_unscale", false)})
          .backward();
    }
    for (const std::size_t k : used) amp::step(opts[k]);
    const json& want = c.at("out")[i];
    const amp::AmpState state = amp::state_dict(opts[1]);
    ASSERT_EQ(state.loss_scalers.size(), want.at("scales").size());
    for (std::size_t s = 0; s < state.loss_scalers.size(); ++s) {
      scales.see(state.loss_scalers[s].loss_scale, want.at("scales")[s], 1, where);
      if (options.loss_scale->is_dynamic()) {
        EXPECT_EQ(state.loss_scalers[s].unskipped, want.at("unskipped")[s].get<int>()) << where;
      }
    }
    for (const auto& [pair, of] : {std::pair{&a, "a"}, {&b, "b"}})
      for (std::size_t k = 0; k < 2; ++k)
        weights.see(pair->w->to_floats()[k], want.at(of)[k].get<float>(), 1, where);
  }
}

std::vector<json> cases() {
  const json all = read("tests/fixtures/apex_losses.json").at("cases");
  return {all.begin(), all.end()};
}
INSTANTIATE_TEST_SUITE_P(Apex, ApexLosses, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.at("name"); });

TEST(Apex, SharesOutModelsAmongOptimizers) {
  begin();
  {
    Pair a, b;
    auto [nets, opts] =
        amp::initialize(std::tie(a, b), {optim::Sgd{.lr = 0.125}}, quiet({.opt_level = "O2"}));
    ASSERT_EQ(opts.size(), 1u);
    EXPECT_EQ(opts[0].parameters(), (std::vector<VariablePtr>{a.w, b.w}));
    EXPECT_NE(opts[0].master(1), nullptr);
    EXPECT_EQ(a.w->type.dtype, DType::F16);
  }
  {
    models::Mlp model({kFeatures, 24, kClasses});
    auto [net, opts] =
        amp::initialize(model,
                        {amp::OptimizerFor(optim::Sgd{.lr = 0.1}, {model.parameters()[0]}),
                         amp::OptimizerFor(optim::AdamW{}, {model.parameters()[2]})},
                        quiet({.opt_level = "O2"}));
    ASSERT_EQ(opts.size(), 2u);
    EXPECT_EQ(opts[0].scale, opts[1].scale);
    const Batches b(1);
    amp::scale_loss(cross_entropy(net(b.x), b.label), opts).backward();
    EXPECT_EQ(amp::state_dict(opts[0]).loss_scalers[0].unskipped, 1);
    EXPECT_FALSE(amp::step(opts[0]).skipped());
    EXPECT_FALSE(amp::step(opts[1]).skipped());
  }
  Pair a, b, c;
  const Options o = quiet({});
  const optim::Sgd sgd{.lr = 0.1};
  EXPECT_EQ(code_of([&] { amp::initialize(std::tie(a, b, c), {sgd, sgd}, o); }), "E0807");
  EXPECT_EQ(code_of([&] {
              amp::initialize(std::tie(a, b), {amp::OptimizerFor(sgd, {a.w}), sgd}, o);
            }),
            "E0807");
  EXPECT_EQ(code_of([&] { amp::initialize(a, {amp::OptimizerFor(sgd, {b.w})}, o); }), "E0807");
  EXPECT_EQ(code_of([&] {
              amp::initialize(std::tie(a, b),
                              {amp::OptimizerFor(sgd, {a.w}), amp::OptimizerFor(sgd, {a.w})}, o);
            }),
            "E0807");
  EXPECT_EQ(a.w->type.dtype, DType::F32);
}

// --- blocks

struct Scaled {
  Pair pair;
  std::vector<Optimizer> opts =
      amp::initialize(pair, {amp::OptimizerFor(optim::Sgd{.lr = 0.125})},
                      quiet({.patch_torch_functions = false, .num_losses = 2}))
          .second;
  Optimizer& opt = opts[0];
  Tensor loss(std::vector<float> factor) const { return pair(from_floats(factor, {2})); }
  double scale(std::size_t i = 0) const { return amp::state_dict(opt).loss_scalers[i].loss_scale; }
};

TEST(ScaleLoss, DividesWhereTheBlockEnds) {
  begin();
  Scaled s;
  auto scaled = amp::scale_loss(s.loss({1, 2}), s.opt);
  scaled.backward();
  EXPECT_EQ(grad_of(s.pair.w).to_vector(), (std::vector<double>{65536, 131072}));
  scaled.end();
  EXPECT_EQ(grad_of(s.pair.w).to_vector(), (std::vector<double>{1, 2}));
  scaled.end();  // which has happened
  EXPECT_EQ(clip_grad_norm_(amp::master_params(s.opt), 100).item(), std::sqrt(5.0f));
  const StepResult r = amp::step(s.opt);
  EXPECT_EQ(r.loss_scale.item(), 65536);
  EXPECT_EQ(s.pair.w->to_floats(), (std::vector<float>{0.875f, -2.25f}));
}

TEST(ScaleLoss, DelayedChecksMoveTheScaleOnce) {
  begin();
  Scaled s;
  amp::scale_loss(s.loss({INFINITY, 2}), s.opt, {.delay_overflow_check = true}).backward();
  EXPECT_EQ(s.scale(), 65536);
  amp::scale_loss(s.loss({1, 2}), s.opt).backward();
  EXPECT_EQ(s.scale(), 32768);
  EXPECT_TRUE(amp::step(s.opt).skipped());
  EXPECT_EQ(s.pair.w->to_floats(), (std::vector<float>{1, -2}));
  amp::scale_loss(s.loss({1, 2}), s.opt).backward();
  EXPECT_EQ(s.scale(), 32768);
  EXPECT_FALSE(amp::step(s.opt).skipped());
}

// An overflow whose gradients are dropped skips no later step.
TEST(ScaleLoss, ZeroGradBeginsAnew) {
  begin();
  Scaled s;
  amp::scale_loss(s.loss({INFINITY, 2}), s.opt).backward();
  s.opt.zero_grad();
  amp::scale_loss(s.loss({1, 2}), s.opt, {.loss_id = 1}).backward();
  EXPECT_FALSE(amp::step(s.opt).skipped());
  amp::scale_loss(s.loss({1, 2}), s.opt, {.delay_unscale = true}).backward();
  s.pair.zero_grad();
  amp::scale_loss(s.loss({1, 0}), s.opt, {.loss_id = 1}).backward();
  amp::step(s.opt);
  EXPECT_EQ(s.pair.w->to_floats(), (std::vector<float>{0.75f, -2.25f}));
}

TEST(ScaleLoss, MistakesOfOrderAreRefused) {
  begin();
  Scaled s, other;
  const auto refused = [](const auto& call, const char* word) {
    const std::string text = refusal(call);
    EXPECT_NE(text.find("E0808"), std::string::npos) << text;
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  refused([&] { const auto scaled = amp::scale_loss(s.loss({1, 1}), s.opt); }, "no gradients");
  refused([&] { amp::step(s.opt); }, "no gradients to step with");
  refused(
      [&] {
        const auto scaled = amp::scale_loss(s.loss({1, 1}), s.opt);
        amp::scale_loss(s.loss({1, 1}), s.opt).backward();
      },
      "within another");
  refused(
      [&] {
        const auto scaled = amp::scale_loss(s.loss({1, 1}), s.opt);
        scaled.backward();
        amp::step(s.opt);
      },
      "within a block");
  refused(
      [&] {
        amp::scale_loss(s.loss({1, 1}), {s.opt, other.opt}).backward();
      },
      "different loss scales");
  refused(
      [&] {
        amp::scale_loss(s.loss({1, 1}), std::vector<Optimizer>()).backward();
      },
      "no optimizer");
  s.loss({1, 1}).backward();
  refused([&] { amp::scale_loss(s.loss({1, 1}), s.opt).backward(); }, "without the loss scale");
  s.opt.zero_grad();
  refused(
      [&] {
        const auto scaled = amp::scale_loss(s.loss({1, 1}), s.opt);
        s.loss({1, 1}).backward();
      },
      "without the loss scale");
  amp::scale_loss(s.loss({1, 1}), s.opt).backward();
  s.loss({1, 1}).backward();
  refused([&] { amp::step(s.opt); }, "without the loss scale");
  s.opt.zero_grad();
  amp::scale_loss(s.loss({1, 1}), s.opt, {.delay_unscale = true}).backward();
  refused([&] { amp::step(s.opt); }, "multiplied with the loss scale still");
  refused(
      [&] {
        amp::scale_loss(s.loss({1, 1}), s.opt, {.loss_id = 1}).backward();
      },
      "another loss scale");
  EXPECT_EQ(code_of([&] {
              amp::scale_loss(s.loss({1, 1}), s.opt, {.loss_id = 2}).backward();
            }),
            "E0814");
  EXPECT_EQ(s.pair.w->to_floats(), (std::vector<float>{1, -2}));
  s.opt.zero_grad();
  s.opt.set_accumulation(2);
  refused([&] { amp::scale_loss(s.loss({1, 1}), s.opt).backward(); }, "micro-batches");
  auto traced = compile([&](const Tensor& x) {
    amp::scale_loss(s.pair(x), other.opt).backward();
    return x;
  });
  EXPECT_EQ(code_of([&] { traced(full({2}, 1)); }), "E0305");
}

// A scale that has moved under gradients which wait for it would divide them by the wrong number.
TEST(ScaleLoss, AScaleThatMovesUnderDelayedGradientsIsRefused) {
  begin();
  Pair a, b;
  auto [nets, opts] = amp::initialize(std::tie(a, b), {optim::Sgd{}, optim::Sgd{}},
                                      quiet({.patch_torch_functions = false}));
  const Tensor one = full({2}, 1);
  amp::scale_loss(a(one), opts[0], {.delay_unscale = true}).backward();
  amp::scale_loss(b(one), opts[1]).backward();
  EXPECT_EQ(code_of([&, &opts = opts] { amp::scale_loss(a(one), opts[0]).backward(); }), "E0808");
}

TEST(ScaleLoss, AnExceptionLeavesNothingBehind) {
  begin();
  Scaled s;
  amp::scale_loss(s.loss({4, 4}), s.opt).backward();
  EXPECT_THROW(
      {
        const auto scaled = amp::scale_loss(s.loss({1, 1}), s.opt);
        scaled.backward();
        throw std::runtime_error("the program's own");
      },
      std::runtime_error);
  EXPECT_FALSE(grad_of(s.pair.w).is_defined());
  amp::scale_loss(s.loss({1, 2}), s.opt).backward();
  amp::step(s.opt);
  EXPECT_EQ(s.pair.w->to_floats(), (std::vector<float>{0.875f, -2.25f}));
}

TEST(ScaleLoss, GivesUpByTheScaleOfAnyLoss) {
  begin();
  Scaled s;
  const auto overflows = [&](std::size_t id) {
    amp::scale_loss(s.loss({INFINITY, 1}), s.opt, {.loss_id = id}).backward();
    amp::step(s.opt);
  };
  int steps = 0;
  EXPECT_EQ(code_of([&] {
              for (; steps < 1100; ++steps) {
                overflows(1);
                if (steps % 100 == 0) {
                  amp::scale_loss(s.loss({1, 1}), s.opt).backward();
                  amp::step(s.opt);
                }
              }
            }),
            "E0810");
  EXPECT_EQ(steps, 999);
  EXPECT_EQ(s.scale(0), 65536);
  EXPECT_GT(s.scale(1), 0);
}

// --- state

TEST(ApexState, IsWhatApexSaves) {
  begin();
  Scaled s;
  amp::scale_loss(s.loss({1, 2}), s.opt).backward();
  amp::scale_loss(s.loss({INFINITY, 2}), s.opt, {.loss_id = 1}).backward();
  amp::step(s.opt);
  const amp::AmpState state = amp::state_dict(s.opt);
  EXPECT_EQ(state.str(), R"({"loss_scaler0":{"loss_scale":65536.0,"unskipped":1},)"
                         R"("loss_scaler1":{"loss_scale":32768.0,"unskipped":0}})");
  EXPECT_EQ(amp::AmpState::parse(state.str()), state);
  Scaled t;
  amp::load_state_dict(t.opt, state);
  EXPECT_EQ(amp::state_dict(t.opt), state);
  amp::load_state_dict(
      t.opt, amp::AmpState::parse(R"({"loss_scaler0": {"loss_scale": 4.0, "unskipped": 1999}})"));
  EXPECT_EQ(t.scale(1), 32768);
  amp::scale_loss(t.loss({1, 2}), t.opt).backward();
  EXPECT_EQ(t.scale(), 8);
  for (const char* text :
       {"", "[1]", "[]", "{}", "null", "{\"scale\": 1}", "{\"loss_scaler0\": {}}",
        "{\"loss_scaler1\": {\"loss_scale\": 4.0, \"unskipped\": 1}}"})
    EXPECT_EQ(code_of([&] { amp::AmpState::parse(text); }), "E0832") << text;
  for (const double scale : {0.0, -1.0, 1e300})
    EXPECT_EQ(code_of([&] { amp::load_state_dict(t.opt, {{{.loss_scale = scale}}}); }), "E0814");
  EXPECT_EQ(code_of([&] { amp::load_state_dict(t.opt, {{{.unskipped = -1}}}); }), "E0814");
  // As a run's checkpoint knows them.
  std::set<std::string> names;
  for (const VariablePtr& v : s.opt.state()) names.insert(v->name.str());
  for (const char* name : {"scaler.scale", "scaler.scale.1", "scaler.good_steps.1"})
    EXPECT_TRUE(names.contains(name)) << name;
}

struct Both : nn::Module {
  struct Half : nn::Layer {
    using Layer::Layer;
    nn::Linear up{*this, "up", 2, 2};
    Tensor operator()(Operand x) const {
      return call(x, [&](const Tensor& t) { return up(t); });
    }
  };
  Half a{*this, "a"}, b{*this, "b"};
  std::vector<Optimizer> optimizers =
      amp::initialize(std::tie(a, b), {optim::AdamW{}, optim::AdamW{}},
                      quiet({.opt_level = "O2", .num_losses = 3}))
          .second;
};

TEST(ApexState, IsInCheckpointsOfSeveralOptimizers) {
  begin();
  const TemporaryFolder folder;
  Both saved;
  const Tensor x = full({2, 2}, 1), infinite = from_floats({INFINITY}, {});
  amp::scale_loss(mean(cast(saved.a(x), DType::F32)), saved.optimizers[0], {.loss_id = 1})
      .backward();
  amp::step(saved.optimizers[0]);
  amp::scale_loss(mean(cast(saved.b(x), DType::F32)) * infinite, saved.optimizers[1],
                  {.loss_id = 2})
      .backward();
  EXPECT_TRUE(amp::step(saved.optimizers[1]).skipped());
  const amp::AmpState want{{{65536, 0}, {65536, 1}, {32768, 0}}};
  EXPECT_EQ(amp::state_dict(saved.optimizers[0]), want);
  {
    Checkpoints checkpoints(folder.path() / "run");
    checkpoints.save({.step = 2}, saved, saved.optimizers);
  }
  Both loaded;
  Checkpoints checkpoints(folder.path() / "run");
  ASSERT_TRUE(checkpoints.load(loaded, loaded.optimizers).has_value());
  for (const Optimizer& o : loaded.optimizers) EXPECT_EQ(amp::state_dict(o), want);
  EXPECT_EQ(state_of(loaded, loaded.optimizers[1]), state_of(saved, saved.optimizers[1]));
}

}  // namespace
}  // namespace aloft::e2e
