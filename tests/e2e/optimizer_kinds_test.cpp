// Every kind of optimizer that the catalogue has, with every formula of it: eager and compiled
// agree to the bit, a run that goes on from a checkpoint ends as one that never stopped; and the
// means of weights that an optimizer keeps.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/file.h"
#include "checkpoint/checkpoints.h"
#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/averaged_weights.h"
#include "models/state_dict.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "optim/adamw.h"
#include "optim/kind.h"
#include "optim/sgd.h"
#include "scalar/philox.h"
#include "temporary_folder.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kFeatures = 12, kClasses = 5, kBatch = 8;

struct Mlp : nn::Module {
  nn::Linear up{*this, "up", kFeatures, 24}, head{*this, "head", 24, kClasses};
  Tensor operator()(const Tensor& x) { return head(gelu(up(x))); }
};

Batch points(int step) {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  for (std::int64_t r = 0; r < kBatch; ++r) {
    for (std::int64_t f = 0; f < kFeatures; ++f)
      x.push_back(static_cast<float>(scalar::normal(
          scalar::RandomKey{7, static_cast<std::uint64_t>(step), 0, std::uint64_t(r)}, f)));
    labels.push_back(static_cast<std::int32_t>((step + r) % kClasses));
  }
  return {from_floats(x, {kBatch, kFeatures}), from_ints(labels, {kBatch})};
}

const auto kLoss = [](auto& net, const Tensor& x, const Tensor& label) {
  return cross_entropy(net(x), label);
};

struct Case {
  std::string name;
  OptimizerSpec spec;
  const char* precision = "O2:bf16";
};

// Each formula with the options that its op is tested with, its states and weights in every form.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const optim::FormulaRecord* formula : optim::formulas()) {
    OptimizerSpec spec;
    spec.rule = {formula, formula->samples.back()};
    spec.lr = 1.0 / 128;
    spec.weight_decay = 1.0 / 64;
    spec.clip_norm = 1;
    spec.clip_value = 0.25;
    spec.rest = {"head*"};
    all.push_back({std::string(formula->name), spec});
    if (!formula->needs_whole_states) spec.states = StateFormat::BF16;
    spec.clip_adaptive = 0.5;
    spec.average = {.kind = AverageKind::Ema, .decay = 0.75};
    all.push_back({std::string(formula->name) + "_in_bf16", spec});
    spec.rounding = Rounding::Stochastic;
    if (!formula->is_of_tensors && !formula->needs_whole_states) spec.states = StateFormat::Block8;
    all.push_back({std::string(formula->name) + "_rounded_at_random", spec, "O3:bf16"});
  }
  return all;
}

class Kinds : public ::testing::TestWithParam<Case> {};

TEST_P(Kinds, AgreeInBothModesAndOnAnyNumberOfThreads) {
  TrainOptions o{Mode::Eager, GetParam().precision, 12, 1, 1, GetParam().spec};
  const Outcome eager = train<Mlp>(o, points, kLoss);
  o.mode = Mode::Compiled;
  o.threads = 3;
  const Outcome compiled = train<Mlp>(o, points, kLoss);
  EXPECT_EQ(eager.losses, compiled.losses);
  EXPECT_EQ(differing(eager, compiled), std::vector<std::string>());
  o.steps = 6;
  EXPECT_NE(differing(train<Mlp>(o, points, kLoss), compiled), std::vector<std::string>());
}

// Six steps, and six more of an optimizer and a model that have loaded what the first ones saved.
TEST_P(Kinds, GoOnAsIfTheyHadNeverStopped) {
  const TrainOptions o{Mode::Compiled, GetParam().precision, 12, 2, 1, GetParam().spec};
  const Outcome whole = train<Mlp>(o, points, kLoss);
  const TemporaryFolder folder;
  Outcome resumed;
  for (const int begin : {0, 6}) {
    manual_seed(1);
    Mlp model;
    auto [net, opt] = amp::initialize(model, o.optimizer, o.precision);
    Checkpoints checkpoints(folder.path());
    if (begin > 0) {
      ASSERT_EQ(checkpoints.load(model, opt)->step, begin);
    }
    auto step = compile([&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
      return minimize(kLoss(net, x, label), opt);
    });
    for (int i = begin; i < begin + 6; ++i) {
      const Batch b = points(i);
      resumed.losses.push_back(step(b.x, b.label).loss());
    }
    checkpoints.save({begin + 6, 1}, model, opt);
    resumed.state = state_of(model, opt);
  }
  EXPECT_EQ(resumed.losses, whole.losses);
  EXPECT_EQ(differing(whole, resumed), std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Kinds, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// Masters that are split and states in 8 bits are for formulas of elements.
TEST(KindsOfTensors, RefuseWhatTheirOpsCannotRead) {
  use_cpu();
  int refused = 0;
  for (const optim::FormulaRecord* formula : optim::formulas())
    for (const bool is_master : {true, false}) {
      OptimizerSpec spec;
      spec.rule = {formula, formula->options};
      (is_master ? spec.master : spec.states) =
          is_master ? StateFormat::Split : StateFormat::Block8;
      Mlp model;
      const std::string code = code_of([&] { amp::initialize(model, spec, "O2:bf16"); });
      const bool is_refused = formula->is_of_tensors || (!is_master && formula->needs_whole_states);
      EXPECT_EQ(code, is_refused ? "E0815" : "") << formula->name;
      refused += !code.empty();
    }
  EXPECT_EQ(refused, 11);
}

// What has a master or is fp32 loses no step, and fp16 is rounded to nearest.
TEST(RoundingAtRandom, IsOfBf16WeightsWithoutMasters) {
  use_cpu();
  const auto said = [](const char* precision) {
    Mlp model;
    return code_of(
        [&] { amp::initialize(model, optim::AdamW{.rounding = Rounding::Stochastic}, precision); });
  };
  for (const char* precision : {"O0", "O1:bf16", "O2:bf16", "O3:fp16"})
    EXPECT_EQ(said(precision), "E0815") << precision;
  EXPECT_EQ(said("O3:bf16"), "");
}

// The two means of AdamW take a quarter of the memory, and are read as floats.
TEST(StatesIn8Bits, AreFloatsToWhoAsks) {
  use_cpu();
  TrainOptions o{Mode::Compiled, "O2:bf16", 3};
  manual_seed(1);
  Mlp model;
  auto [net, opt] =
      amp::initialize(model, optim::AdamW{.lr = 1e-2, .states = StateFormat::Block8}, o.precision);
  const Batch b = points(0);
  minimize(kLoss(net, b.x, b.label), opt);
  for (std::size_t i = 0; i < opt.parameters().size(); ++i) {
    const auto count = static_cast<std::size_t>(opt.parameters()[i]->type.shape.max_numel());
    const Variable &mean = *opt.moment(0, i), &square = *opt.moment(1, i);
    ASSERT_EQ(mean.to_floats().size(), count);
    EXPECT_LE(mean.type.max_bytes(), count + 4 * (count / 256 + 1));
    double most = 0;
    for (const float m : mean.to_floats()) most = std::max(most, std::abs(double(m)));
    EXPECT_GT(most, 0);
    for (std::size_t k = 0; k < count; ++k) {
      const double m = mean.to_floats()[k], v = square.to_floats()[k];
      EXPECT_GE(v, 0);
      // One step from 0: v = 0.001 g^2 where m = 0.1 g, to an eighth each.
      if (std::abs(m) > most / 1024) {
        EXPECT_NEAR(v / (0.1 * m * m), 1, 0.5) << k;
      }
    }
  }
}

// One weight, whose gradient is the given number.
struct One : nn::Module {
  VariablePtr w = add_parameter("w", {1}, [](float* to, std::int64_t) { *to = 1; });
  Tensor operator()(const Tensor& g) const { return sum(use(w) * g); }
};

// --- a rate that goes by losses

// In eager steps and in a compiled one that was traced before the drop; kept in checkpoints.
TEST(Plateaus, LowerTheRateOfStepsToCome) {
  use_cpu();
  const TemporaryFolder folder;
  const scalar::ScheduleRule schedule{
      .kind = scalar::ScheduleKind::Plateau, .min_factor = 0.125, .gamma = 0.5, .patience = 1};
  const optim::Sgd spec{.lr = 1, .schedule = schedule};
  One model;
  auto [net, opt] = amp::initialize(model, spec, "O0");
  const auto one = [&, &net = net, &opt = opt](const Tensor& g) { return minimize(net(g), opt); };
  auto compiled = compile(one, {.partial_batches = false});
  const Tensor g = from_floats({1}, {1});
  const auto rates = [&] {
    return std::pair{compiled(g).learning_rate.item(), one(g).learning_rate.item()};
  };
  EXPECT_EQ(rates(), std::pair(1.0, 1.0));
  for (const double loss : {2.0, 2.0}) opt.report_loss(loss);
  EXPECT_EQ(rates(), std::pair(1.0, 1.0));
  opt.report_loss(std::nan(""));  // one more that is no better
  EXPECT_EQ(rates(), std::pair(0.5, 0.5));
  opt.report_loss(2.0);
  Checkpoints(folder.path()).save({1, 1}, model, opt);
  One other;
  auto [net2, opt2] = amp::initialize(other, spec, "O0");
  ASSERT_TRUE(Checkpoints(folder.path()).load(other, opt2).has_value());
  for (Optimizer* o : {&opt, &opt2}) {
    o->report_loss(2.0);
    const auto kept = o->plateau()->buffer->read<double>();
    EXPECT_EQ(kept[0], 0.25);
    for (int i = 0; i < 8; ++i) o->report_loss(2.0);
    EXPECT_EQ(o->plateau()->buffer->read_one<double>(), 0.125);
  }
  One plain;
  auto [net3, opt3] = amp::initialize(plain, optim::Sgd{}, "O0");
  EXPECT_EQ(code_of([&, &opt3 = opt3] { opt3.report_loss(1); }), "E0831");
}

// --- rates that are put together

// Eager steps, a compiled one and a run that goes on from a checkpoint have the rates of one
// function, of schedules one behind the other, and of their product.
TEST(Schedules, ThatAProgramPutsTogetherAreFollowed) {
  use_cpu();
  using enum scalar::ScheduleKind;
  using scalar::ScheduleRule;
  const ScheduleRule rise{.kind = Linear, .total = 4, .min_factor = 1, .start_factor = 0.25};
  const ScheduleRule fall{.kind = Exponential, .gamma = 0.3};
  const ScheduleRule product{.kind = Product, .parts = {fall, rise}};
  const ScheduleRule rules[] = {
      scalar::tabulated([](std::int64_t s) { return 1 / (1 + 0.3 * static_cast<double>(s)); }, 5),
      product,
      {.kind = Sequence, .milestones = {3, 5}, .parts = {rise, product, {}}},
      {.kind = Triangular2, .min_factor = 0.1, .step_size = 2, .step_down = 1}};
  for (const ScheduleRule& rule : rules) {
    const TemporaryFolder folder;
    const optim::Sgd spec{.lr = 0.7, .schedule = rule};
    One model;
    auto [net, opt] = amp::initialize(model, spec, "O0");
    const auto one = [&, &net = net, &opt = opt](const Tensor& g) { return minimize(net(g), opt); };
    auto compiled = compile(one, {.partial_batches = false});
    const Tensor g = from_floats({1}, {1});
    const auto want = [&](std::int64_t s) {
      return static_cast<float>(0.7 * schedule_factor(rule, s));
    };
    for (int s = 0; s < 6; ++s)
      EXPECT_EQ((s % 2 == 0 ? compiled(g) : one(g)).learning_rate.item(), want(s))
          << name_of(rule.kind) << " " << s;
    Checkpoints(folder.path()).save({6, 6}, model, opt);
    One other;
    auto [net2, opt2] = amp::initialize(other, spec, "O0");
    ASSERT_TRUE(Checkpoints(folder.path()).load(other, opt2).has_value());
    EXPECT_EQ(minimize(net2(g), opt2).learning_rate.item(), want(6)) << name_of(rule.kind);
    EXPECT_EQ(minimize(net2(g), opt2).learning_rate.item(), want(7)) << name_of(rule.kind);
  }
}

// --- means of weights

float value_of(const VariablePtr& v) { return v->to_floats()[0]; }

// The mean behind each step of plain descent at rate 1, whose gradients are these.
std::vector<float> means(const Averaging& average, const std::vector<float>& gradients,
                         bool is_compiled) {
  use_cpu();
  One model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 1, .average = average}, "O0");
  const auto one = [&, &net = net, &opt = opt](const Tensor& g) { return minimize(net(g), opt); };
  auto compiled = compile(one, {.partial_batches = false});
  std::vector<float> out;
  for (const float g : gradients) {
    const Tensor x = from_floats({g}, {1});
    is_compiled ? compiled(x) : one(x);
    out.push_back(value_of(opt.average(0)));
  }
  return out;
}

// The weights go 1, 2, 4, 8, 4: the mean begins as the first of them, and a step that is skipped is
// none.
TEST(Averages, AreWhatTheirNamesSay) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> gradients = {-1, -2, inf, -4, 4};
  for (const bool is_compiled : {false, true}) {
    using Kind = AverageKind;
    EXPECT_EQ(means({.kind = Kind::Ema, .decay = 0.75}, gradients, is_compiled),
              (std::vector<float>{2, 2.5, 2.5, 3.875, 3.90625}));
    EXPECT_EQ(means({.kind = Kind::Ema, .decay = 0.75, .from = 1}, gradients, is_compiled),
              (std::vector<float>{2, 4, 4, 5, 4.75}));
    const std::vector<float> swa = means({.kind = Kind::Swa}, gradients, is_compiled);
    const std::vector<float> want = {2, 3, 3, 14.0f / 3, 4.5};
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(swa[i], want[i], 1e-6) << i;
  }
}

// They stand in the weights' place for a while, in the type of these, and the training goes on.
TEST(Averages, StandInTheWeightsPlace) {
  use_cpu();
  for (const char* level : {"O0", "O2:bf16"}) {
    manual_seed(1);
    Mlp model;
    auto [net, opt] = amp::initialize(
        model, optim::AdamW{.lr = 0.25, .average = {.kind = AverageKind::Ema, .decay = 0.5}},
        level);
    const Batch b = points(0);
    auto loss = compile(
        [&, &net = net](const Tensor& x, const Tensor& label) { return kLoss(net, x, label); });
    const auto untouched = state_of(model, opt);
    { const AveragedWeights none(opt); }  // before the first step there are none
    EXPECT_EQ(state_of(model, opt), untouched);
    for (int i = 0; i < 3; ++i) {
      const Batch one = points(i);
      minimize(kLoss(net, one.x, one.label), opt);
    }
    const auto before = state_of(model, opt);
    const double live = loss(b.x, b.label).item();
    double mean = 0;
    {
      const AveragedWeights means(opt);
      mean = loss(b.x, b.label).item();
      const std::vector<float> now = model.up.weight->to_floats(),
                               kept = opt.average(0)->to_floats();
      for (std::size_t i = 0; i < now.size(); ++i)
        EXPECT_NEAR(now[i], kept[i], std::abs(kept[i]) / 128) << level;
    }
    EXPECT_NE(mean, live);
    EXPECT_EQ(loss(b.x, b.label).item(), live);
    EXPECT_EQ(state_of(model, opt), before);
    // A step would go on from the means, and be gone behind the block.
    auto step = compile([&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
      return minimize(kLoss(net, x, label), opt);
    });
    step(b.x, b.label);
    const auto stepped = state_of(model, opt);
    {
      const AveragedWeights means(opt);
      EXPECT_EQ(code_of([&] { step(b.x, b.label); }), "E0836");
      EXPECT_EQ(code_of([&, &net = net, &opt = opt] { minimize(kLoss(net, b.x, b.label), opt); }),
                "E0836");
    }
    EXPECT_EQ(state_of(model, opt), stepped);
    step(b.x, b.label);
    EXPECT_NE(state_of(model, opt), stepped);
  }
}

// What needs the weights themselves would take the means for them, or be gone behind the block.
TEST(Averages, AreNoPlaceForWhatNeedsTheWeights) {
  use_cpu();
  const TemporaryFolder folder;
  for (const char* level : {"O0", "O2:bf16"}) {
    manual_seed(1);
    Mlp model;
    auto [net, opt] = amp::initialize(
        model, optim::AdamW{.lr = 0.25, .average = {.kind = AverageKind::Ema, .decay = 0.5}},
        level);
    const auto step = [&, &net = net, &opt = opt] {
      const Batch b = points(0);
      minimize(kLoss(net, b.x, b.label), opt);
    };
    for (int i = 0; i < 3; ++i) step();
    const Path runs = folder.path() / level, weights = folder.path() / "weights.safetensors",
               of_means = folder.path() / "means.safetensors";
    Checkpoints checkpoints(runs);
    checkpoints.save({3, {}}, model, opt);
    models::save_state(weights, model);
    const auto before = state_of(model, opt);
    {
      const AveragedWeights means(opt);
      const std::vector<float> mean = model.up.weight->to_floats();
      const auto refused = [&](const char* what, const auto& call) {
        expect_words(refusal(call), {"E0836", what, "end the block"});
        EXPECT_EQ(model.up.weight->to_floats(), mean) << what;
      };
      refused("means are put", [&, &opt = opt] { const AveragedWeights inner(opt); });
      refused("a step is made", step);  // and not allowed by the inner one's end
      refused("is saved", [&, &opt = opt] { checkpoints.save({4, {}}, model, opt); });
      refused("is loaded", [&, &opt = opt] { checkpoints.load(model, opt); });
      refused("are loaded", [&] { models::load_state(Safetensors::open(weights), model); });
      refused("are loaded", [&] { models::write_state(*model.up.weight, 0, mean); });
      refused("is made", [&] { Optimizer(optim::Sgd{}, model.parameters(), scalar::no_scaler()); });
      EXPECT_FALSE(path_exists(runs / "step-000004"));
      models::save_state(of_means, model);
      const auto saved = [&](const Path& file) {
        std::vector<float> values(mean.size());
        const Safetensors all = Safetensors::open(file);
        models::read_floats(all.at(model.up.weight->name.str()), 0, values);
        return values;
      };
      EXPECT_EQ(saved(of_means), mean) << level;
      EXPECT_NE(saved(weights), mean) << level;
    }
    EXPECT_EQ(state_of(model, opt), before);
    checkpoints.save({4, {}}, model, opt);
    step();
    ASSERT_TRUE(checkpoints.load(model, opt));
    EXPECT_EQ(state_of(model, opt), before);
  }
}

// A model that was not prepared has an optimizer of its own.
TEST(Averages, NoPrecisionIsGivenMeanwhile) {
  use_cpu();
  Mlp model;
  Optimizer opt(optim::AdamW{.lr = 0.25, .average = {.kind = AverageKind::Ema}}, model.parameters(),
                scalar::no_scaler());
  const Batch b = points(0);
  minimize(kLoss(model, b.x, b.label), opt);
  const auto before = state_of(model, opt);
  {
    const AveragedWeights means(opt);
    expect_words(refusal([&] { amp::initialize(model, amp::Options{.opt_level = "O2"}); }),
                 {"E0836", "a model is given a precision", "end the block"});
  }
  EXPECT_EQ(state_of(model, opt), before);
}

TEST(Averages, ThatNobodyKeepsAreRefused) {
  use_cpu();
  Mlp model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{}, "O0");
  EXPECT_EQ(opt.average(0), nullptr);
  EXPECT_EQ(code_of([&, &opt = opt] { const AveragedWeights means(opt); }), "E0830");
  Mlp fresh;
  EXPECT_EQ(code_of([&] {
              amp::initialize(
                  fresh, optim::AdamW{.average = {.kind = AverageKind::Ema, .decay = 1}}, "O0");
            }),
            "E0814");
}

}  // namespace
}  // namespace aloft::e2e
