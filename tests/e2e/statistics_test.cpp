// Statistics of values inside a program: who asks for them changes no bit and no kernel of what is
// computed; they are those of the values, of every number of threads; calls of modules and
// parameters have them, and their gradients.
#include "ops/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "e2e/tapped_steps.h"
#include "frontend/eager.h"
#include "nn/linear.h"
#include "numbers.h"
#include "observe/probe/overflow.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "scalar/split_float.h"
#include "types/statistics.h"

namespace aloft::e2e {
namespace {

const Strings kValues = {"*", "backward:*", "update:*", "parameter:*"};

Strings statistics_of_all() {
  Strings patterns;
  for (const std::string& p : kValues) patterns.push_back(std::string(kStatisticsPrefix) + p);
  return patterns;
}

using Steps = TappedSteps<std::vector<double>>;

// Instructions that look are left out, and what they alone make necessary.
Steps steps_of(const char* precision, int threads, const Strings& taps) {
  Steps run = tapped_steps(precision, threads, taps, [](const Tensor& t) { return t.to_vector(); });
  std::erase_if(run.instructions, [](const std::string& i) {
    return i.starts_with("cpu.statistics for ") || i.ends_with(" for /concat#0");
  });
  take_computed_again(run.instructions);
  return run;
}

class StatisticsOfSteps : public testing::TestWithParam<const char*> {};

TEST_P(StatisticsOfSteps, ChangeNeitherKernelsNorBits) {
  const Steps plain = steps_of(GetParam(), 2, {});
  for (const int threads : {1, 2}) {
    const Steps looked_at = steps_of(GetParam(), threads, statistics_of_all());
    EXPECT_GT(looked_at.taps[0].size(), 80u);
    EXPECT_EQ(looked_at.instructions, plain.instructions);
    EXPECT_EQ(looked_at.results, plain.results);
    EXPECT_EQ(looked_at.state, plain.state);
  }
}

TEST_P(StatisticsOfSteps, AreTheSameOnAnyNumberOfThreads) {
  const Steps two = steps_of(GetParam(), 2, statistics_of_all());
  for (const int threads : {1, 4})
    EXPECT_EQ(steps_of(GetParam(), threads, statistics_of_all()).taps, two.taps) << threads;
}

// What the statistics of these values are, in double.
TensorStatistics meaning_of(const std::vector<double>& values, DType type) {
  TensorStatistics s{.max = -INFINITY, .min = INFINITY};
  for (const double v : values) {
    s.max = std::max(s.max, v);
    s.min = std::min(s.min, v);
    s.mean += v;
    s.norm += v * v;
    s.zeros += v == 0;
    s.underflowed += v != 0 && std::abs(v) < edges_of(type).least_normal;
  }
  s.elements = static_cast<double>(values.size());
  s.mean /= s.elements;
  s.norm = std::sqrt(s.norm);
  return s;
}

TEST_P(StatisticsOfSteps, AreThoseOfTheValues) {
  Strings both = statistics_of_all();
  both.insert(both.end(), kValues.begin(), kValues.end());
  const Steps run = steps_of(GetParam(), 2, both);
  int compared = 0;
  for (const auto& seen : run.taps)
    for (const auto& [name, values] : seen) {
      const auto found = seen.find(std::string(kStatisticsPrefix) + name);
      if (found == seen.end()) continue;
      SCOPED_TRACE(name);
      const TensorStatistics got = TensorStatistics::from(found->second);
      const double exact = is_low(run.types.at(name)) ? 9 * 0x1p-24 : 1e-12;
      const TensorStatistics want = meaning_of(values, run.types.at(name));
      EXPECT_EQ(got.max, want.max);
      EXPECT_EQ(got.min, want.min);
      EXPECT_EQ(got.elements, want.elements);
      EXPECT_EQ(got.zeros, want.zeros);
      EXPECT_EQ(got.underflowed, want.underflowed);
      EXPECT_EQ(got.nan + got.positive_inf + got.negative_inf, 0);
      EXPECT_NEAR(got.mean, want.mean, exact * want.norm);
      EXPECT_NEAR(got.norm, want.norm, exact * want.norm);
      ++compared;
    }
  EXPECT_GT(compared, 400);
}

// Of the parameter's master where it has one.
std::vector<double> full_values_of(const Variable& v) {
  const auto n = static_cast<std::size_t>(v.type.shape.max_numel());
  const Variable& kept = v.master && v.master->layout != Layout::SplitRests ? *v.master : v;
  if (kept.type.dtype == DType::F32) {
    const auto all = kept.buffer->read<float>(0, n);
    return {all.data(), all.data() + n};
  }
  const auto half = v.buffer->read<scalar::Bf16>(0, n);
  const auto rests = v.master->buffer->read<std::uint8_t>(0, v.master->type.max_bytes());
  const scalar::ConstRests rest(rests.data(), static_cast<std::int64_t>(n));
  std::vector<double> all;
  for (std::size_t i = 0; i < n; ++i)
    all.push_back(scalar::joined(rest, half[i], static_cast<std::int64_t>(i)));
  return all;
}

// Of what a step adds to the parameters, in f32, against the values before and behind it; steps
// without finite gradients add nothing.
TEST_P(StatisticsOfSteps, OfUpdatesAreThoseOfTheDifferences) {
  use_cpu();
  eager().clear_tape();
  omp_set_num_threads(2);
  for (const StateFormat master : {StateFormat::F32, StateFormat::Split}) {
    if (master == StateFormat::Split && GetParam() != std::string("O2:bf16")) continue;
    manual_seed(3);
    TinyGpt model;
    auto [net, opt] = amp::initialize(
        model, optim::AdamW{.lr = 1e-3, .weight_decay = 0.1, .master = master}, GetParam());
    auto step = compile(
        [&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
          return minimize(cross_entropy(net(x), label), opt);
        },
        {.name = "step", .threads = 2, .taps = {"statistics:parameter:*"}});
    const auto values = [&] {
      std::map<std::string, std::vector<double>> all;
      for (const VariablePtr& p : model.parameters()) all[p->name.str()] = full_values_of(*p);
      return all;
    };
    for (int s = 0; s < 3; ++s) {
      const auto before = values();
      const Batch b = sentences(s, 3);
      step(b.x, b.label);
      const auto behind = values();
      ASSERT_GT(before.size(), 20u);
      for (const auto& [name, old] : before) {
        SCOPED_TRACE(name);
        std::vector<double> change;
        for (std::size_t i = 0; i < old.size(); ++i)
          change.push_back(static_cast<float>(behind.at(name)[i] - old[i]));
        const TensorStatistics got = TensorStatistics::from(
            step.tap("statistics:parameter:" + name + ".update").to_vector());
        const TensorStatistics want = meaning_of(change, DType::F32);
        EXPECT_EQ(got.max, want.max);
        EXPECT_EQ(got.min, want.min);
        EXPECT_EQ(got.elements, want.elements);
        EXPECT_EQ(got.zeros, want.zeros);
        EXPECT_NEAR(got.mean, want.mean, 9 * 0x1p-24 * want.norm);
        EXPECT_NEAR(got.norm, want.norm, 9 * 0x1p-24 * want.norm);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, StatisticsOfSteps,
                         testing::Values("O0", "O2:bf16", "O2:fp16"));

// --- calls of modules

struct Net : nn::Module {
  nn::Linear first{*this, "first", 8, 8};
  nn::Linear second{*this, "second", 8, 8};
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) {
      const Tensor h = first(t);
      return square(h) + gelu(second(h));
    });
  }
};

double norm_of(const Tensor& t) {
  double squares = 0;
  for (double v : t.to_vector()) squares += v * v;
  return std::sqrt(squares);
}

class StatisticsOfCalls : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    omp_set_num_threads(2);
    eager().clear_tape();
    manual_seed(1);
  }

  // What a run of the training step of `net` on x left, by name.
  std::map<std::string, TensorStatistics> of_step(Net& net, const Tensor& x) {
    auto [wrapped, opt] = amp::initialize(net, optim::Sgd{.lr = 0.5}, "O0");
    Programs programs(2);
    programs.tap_calls(&net);
    programs.tap("statistics:parameter:*");
    programs.add("train", {{"x", x.type()}}, [&, &net = wrapped, &opt = opt](const auto& in) {
      return results::flatten(minimize(mean(square(net(in[0]))), opt));
    });
    programs.finish();
    const std::vector<double> values = x.to_vector();
    const std::vector<float> floats(values.begin(), values.end());
    programs.input<float>("train", "x").set(floats);
    programs.run(programs.find("train"), {});
    std::map<std::string, TensorStatistics> all;
    for (const Tap& t : programs.taps("train"))
      if (t.name.starts_with(kStatisticsPrefix))
        all[t.name.substr(kStatisticsPrefix.size())] =
            TensorStatistics::from(programs.output<double>("train", t.name).read());
    refused_.clear();
    for (const RefusedTap& t : programs.refused_taps("train")) refused_.insert(t.name);
    array_ = programs.output<double>("train", kAllStatistics).size();
    return all;
  }

  std::set<std::string> refused_;
  std::size_t array_ = 0;
};

// Against hooks on an eager pass, and a gradient that comes through one reader of two.
TEST_F(StatisticsOfCalls, AreOfWhatModulesTakeAndGiveAndOfTheirGradients) {
  Net net;
  const Tensor x = numbers({5, 8});
  std::map<std::string, double> want;
  {
    const Hook h = net.first.on_output([&](const Tensor& in, const Tensor& out) {
      want["call:first#0.input"] = norm_of(in);
      want["call:first#0.output"] = norm_of(out);
    });
    const Hook g = net.first.on_output_gradient(
        [&](const Tensor& gradient) { want["call:first#0.output.gradient"] = norm_of(gradient); });
    const Hook s = net.second.on_output_gradient(
        [&](const Tensor& gradient) { want["call:second#0.output.gradient"] = norm_of(gradient); });
    mean(square(net(x))).backward();
    for (Hook hook : {h, g, s}) hook.remove();
  }
  want["parameter:first.weight"] = norm_of(current_emitter().state(net.first.weight));
  want["parameter:first.weight.gradient"] = norm_of(grad_of(net.first.weight));
  net.zero_grad();
  const auto got = of_step(net, x);
  for (const auto& [name, norm] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_NEAR(got.at(name).norm, norm, 1e-5 * norm) << name;
  }
  // first's output goes to second and to a square: of its whole gradient a part comes through.
  ASSERT_TRUE(got.contains("call:second#0.input.gradient"));
  EXPECT_LT(got.at("call:second#0.input.gradient").norm,
            0.9 * got.at("call:first#0.output.gradient").norm);
  EXPECT_FALSE(got.contains("call:first#0.input.gradient"));  // x needs none
}

// Where a step stops to be finite: in the update, with a rate that gradients above 1 make too
// large; in the forward phase, with operands whose square is.
class Overflows : public StatisticsOfCalls {
 protected:
  nlohmann::ordered_json first_of_step(double lr, double scale) {
    Net net;
    auto [wrapped, opt] = amp::initialize(net, optim::Sgd{.lr = lr}, "O0");
    Programs programs(2);
    for (const char* of : {"*", "backward:*", "update:*", "parameter:*"})
      programs.tap(std::string(kStatisticsPrefix) + of);
    for (const char* of : {"input:*", "variable:*"})
      programs.tap("perhaps:" + std::string(kStatisticsPrefix) + of);
    const Tensor x = numbers({5, 8});
    programs.add("train", {{"x", x.type()}}, [&, &net = wrapped, &opt = opt](const auto& in) {
      return results::flatten(minimize(mean(square(net(in[0]))), opt));
    });
    programs.finish();
    std::vector<float> floats;
    for (const double v : x.to_vector()) floats.push_back(static_cast<float>(scale * v));
    programs.input<float>("train", "x").set(floats);
    programs.run(programs.find("train"), {});
    const probe::OverflowFinder finder(*programs.plan().find("train"));
    const auto all = programs.output<double>("train", kAllStatistics).read();
    return finder.first({all.data(), all.size()});
  }
};

TEST_F(Overflows, AreFoundInUpdatesAndInTheForwardPhase) {
  EXPECT_TRUE(first_of_step(0.1, 1).is_null());
  const auto update = first_of_step(3e38, 100);
  ASSERT_FALSE(update.is_null());
  EXPECT_EQ(update["op"], "sgd_update");
  EXPECT_EQ(update["phase"], "update");
  EXPECT_TRUE(update["operands_are_finite"]);
  const auto forward = first_of_step(0.1, 1e15);
  ASSERT_FALSE(forward.is_null());
  EXPECT_EQ(forward["phase"], "forward");
  EXPECT_TRUE(forward["operands_are_finite"]);
  EXPECT_GT(forward["inf"].get<int>() + forward["nan"].get<int>(), 0);
  ASSERT_FALSE(forward["operands"].empty());
  for (const auto& operand : forward["operands"]) EXPECT_EQ(operand["inf"], 0);
  EXPECT_NE(probe::overflow_text(forward).find(forward["name"].get<std::string>()),
            std::string::npos);
}

// What a program is given is looked at: no op is named for a number that comes from outside.
TEST_F(Overflows, OfWhatAProgramIsGivenComeFromOutside) {
  const auto first = first_of_step(0.1, std::numeric_limits<double>::quiet_NaN());
  ASSERT_FALSE(first.is_null());
  EXPECT_EQ(first["name"], "input:x");
  EXPECT_FALSE(first.contains("op"));
  EXPECT_EQ(first["nan"], 40);
  EXPECT_EQ(first["operands_are_finite"], false);
  EXPECT_NE(probe::overflow_text(first).find("comes from outside of the step"), std::string::npos);
}

TEST_F(StatisticsOfCalls, LieInOneArrayOnceAValue) {
  Net net;
  const auto got = of_step(net, numbers({5, 8}));
  EXPECT_EQ(got.at("call:first#0.output").norm, got.at("call:second#0.input").norm);
  EXPECT_EQ(array_ % TensorStatistics::kNumbers, 0u);
  EXPECT_LT(array_ / TensorStatistics::kNumbers, got.size());
}

}  // namespace
}  // namespace aloft::e2e
