// amp::GradScaler against torch.amp.GradScaler: several optimizers, gradients that overflow,
// unscale_() with clipping behind it, scales that are given, a state that torch has saved.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu_backend.h"
#include "frontend/eager.h"
#include "frontend/grad_scaler.h"
#include "frontend/left_gradients.h"
#include "frontend/loss_scalers.h"
#include "frontend/module.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "optim/sgd.h"
#include "parity/parity_row.h"

namespace aloft {
namespace {

using nlohmann::json;

struct Pair : nn::Module {
  VariablePtr w = add_parameter("w", {2}, [](float* to, std::int64_t) { to[0] = 1, to[1] = -2; });
  Tensor operator()(const Tensor& factor) const { return sum(use(w) * factor); }
  Optimizer optimizer{optim::Sgd{.lr = 0.125}, parameters(), scalar::no_scaler()};
};

std::vector<json> cases() {
  std::ifstream file("tests/fixtures/scaler.json");
  const json all = json::parse(file).at("cases");
  return {all.begin(), all.end()};
}

amp::GradScalerOptions options_of(const json& given) {
  amp::GradScalerOptions o;
  o.init_scale = given.value("init_scale", o.init_scale);
  o.growth_factor = given.value("growth_factor", o.growth_factor);
  o.backoff_factor = given.value("backoff_factor", o.backoff_factor);
  o.growth_interval = given.value("growth_interval", o.growth_interval);
  o.enabled = given.value("enabled", o.enabled);
  return o;
}

void see_weights(parity::ParityRow& row, const Pair& pair, const json& want,
                 const std::string& where) {
  const std::vector<float> got = pair.w->to_floats();
  for (std::size_t i = 0; i < 2; ++i)
    row.see(got[i], want[i], std::abs(want[i].get<double>()), where);
}

class Scaler : public ::testing::TestWithParam<json> {};

TEST_P(Scaler, KeepsTheScalesAndWeightsOfTorch) {
  use_device(cpu_device());
  const json& c = GetParam();
  Pair pairs[2];
  amp::GradScaler scaler(options_of(c.at("options")));
  const json& steps = c.at("steps");
  ASSERT_GE(steps.size(), 2u);
  const auto name = c.at("name").get<std::string>();
  parity::ParityRow scales("scaler", "torch, " + name + ": scales", 0);
  parity::ParityRow weights("scaler", "torch, " + name + ": weights", 2e-7);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const json& step = steps[i];
    const std::string where = "step " + std::to_string(i);
    if (c.value("resumed_at", -1) == static_cast<int>(i)) {
      EXPECT_EQ(scaler.state_dict(), amp::GradScalerState::parse(c.at("state").dump())) << where;
      scaler = amp::GradScaler();
      scaler.load_state_dict(amp::GradScalerState::parse(c.at("state").dump()));
    }
    for (std::size_t k = 0; k < 2; ++k) {
      pairs[k].zero_grad();
      if (step.at("gradients")[k].is_null()) continue;
      std::vector<float> factor;
      for (const json& x : step.at("gradients")[k])
        factor.push_back(std::stof(x.get<std::string>()));
      scaler.scale(pairs[k](from_floats(factor, {2}))).backward();
    }
    double norm = NAN;
    for (std::size_t k = 0; k < 2; ++k) {
      if (step.at("gradients")[k].is_null()) continue;
      Optimizer& optimizer = pairs[k].optimizer;
      if (step.contains("clip")) {
        scaler.unscale_(optimizer);
        norm = clip_grad_norm_(pairs[k].parameters(), step.at("clip")).item();
      }
      if (step.contains("cut")) {
        scaler.unscale_(optimizer);
        clip_grad_value_(pairs[k].parameters(), step.at("cut"));
      }
      scaler.step(optimizer);
    }
    step.contains("new_scale") ? scaler.update(step.at("new_scale").get<double>())
                               : scaler.update();
    const json& want = c.at("out")[i];
    scales.see(scaler.get_scale(), want.at("scale"), 1, where);
    if (scaler.is_enabled()) {
      EXPECT_EQ(scaler.state_dict().growth_tracker, want.at("tracker").get<int>()) << where;
    }
    see_weights(weights, pairs[0], want.at("a"), where);
    see_weights(weights, pairs[1], want.at("b"), where);
    if (!want.at("norm").is_null()) {
      EXPECT_NEAR(norm, want.at("norm").get<double>(), 1e-6 * norm) << where;
    }
  }
}

// The rules of apex and MindSpore, by their definitions, over overflows that come as they come.
TEST(ScalerRules, KeepTheScalesOfApexAndMindSpore) {
  use_device(cpu_device());
  std::ifstream file("tests/fixtures/scaler.json");
  const json sequences = json::parse(file).at("sequences");
  ASSERT_EQ(sequences.size(), 12u);
  for (const json& c : sequences) {
    const json& o = c.at("options");
    std::vector<bool> overflows;
    for (const char step : c.at("overflows").get<std::string>()) overflows.push_back(step == 'x');
    const auto scales = c.at("scales").get<std::vector<double>>();
    const std::int64_t window = o.at("window");
    ASSERT_GE(scales.size(), 100u);
    std::vector<double> got;
    if (c.at("system") == "apex") {
      scalar::ScalerRule rule = scalar::dynamic_scaler();  // which is apex's
      rule.growth_interval = static_cast<int>(window);
      rule.min = o.value("least", scalar::kNoFloor);
      rule.max = o.value("most", rule.max);
      rule.init = std::min(rule.init, rule.max);
      scalar::ScalerState state = scalar::initial_state(rule);
      for (const bool overflow : overflows) {
        state = next(state, !overflow, rule);
        got.push_back(state.scale);
      }
    } else if (c.at("system") == "manager") {
      amp::DynamicLossScaleManager manager(o.value("init", 16777216.0), o.value("factor", 2.0),
                                           window);
      for (const bool overflow : overflows) {
        manager.update_loss_scale(overflow);
        got.push_back(manager.get_loss_scale());
      }
    } else {
      amp::DynamicLossScaler scaler(o.at("init"), o.at("factor"), window);
      for (const bool overflow : overflows) {
        const Tensor gradient = from_floats({overflow ? INFINITY : 1.0f, 2}, {2});
        EXPECT_TRUE(scaler.adjust(amp::all_finite({gradient})));
        got.push_back(scaler.scale_value());
      }
    }
    const std::string name = c.at("system").get<std::string>() + ", " + o.dump() + ", " +
                             std::to_string(std::ranges::count(overflows, true)) + " overflows";
    parity::ParityRow row("scaler", name, 0);
    ASSERT_EQ(got.size(), scales.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      row.see(got[i], scales[i], 1, "step " + std::to_string(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Torch, Scaler, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.at("name"); });

}  // namespace
}  // namespace aloft
