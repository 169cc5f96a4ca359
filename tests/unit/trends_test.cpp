// The monitor's rules, each with what deserves its alert and what does not; its lines, and what the
// report makes of them.
#include "observe/report/trends.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "observe/trends/trend_lines.h"
#include "observe/trends/trend_watch.h"

namespace aloft::trends {
namespace {

using enum Trend;

// As the recipe has them, with shorter windows.
const Limits kLimits{{10, 4}, {0.99, 3}, {0.001, 1}, {0, 1}, {2, 4}};

// Beside a layer in which all is well.
std::vector<LayerTrends> look(Trend what, std::optional<double> value) {
  LayerTrends well, t;
  well.layer = "h.1";
  well[GradNorm] = 1;
  t.layer = "h.0";
  t[what] = value;
  return {well, t};
}

// "rule" for each alert, in order.
std::string rules(const std::vector<TrendAlert>& alerts) {
  std::string all;
  for (const TrendAlert& a : alerts) all += (all.empty() ? "" : " ") + a.rule;
  return all;
}

// What looks with these values raise, by look; "." for none.
std::string raised(Trend what, const std::vector<double>& values, Limits limits = kLimits) {
  TrendWatch watch(limits);
  std::string all;
  for (const double v : values) {
    watch.step(1, false);
    const std::string found = rules(watch.look(look(what, v)));
    all += all.empty() ? "" : ",";
    all += found.empty() ? "." : found;
  }
  return all;
}

std::string raised_by_losses(const std::vector<double>& losses, bool is_search = false) {
  TrendWatch watch(kLimits);
  std::string all;
  for (const double loss : losses) {
    const std::string found = rules(watch.step(loss, is_search));
    all += all.empty() ? "" : ",";
    all += found.empty() ? "." : found;
  }
  return all;
}

TEST(Trends, ANormThatJumpsIsSaidOnce) {
  EXPECT_EQ(raised(GradNorm, {1, 1.5, 0.5, 1, 11, 12, 1, 1}), ".,.,.,.,norm_jump,.,.,.");
  EXPECT_EQ(raised(GradNorm, {1, 1, 1, 1, 11, 1, 30}), ".,.,.,.,norm_jump,.,norm_jump");
}

TEST(Trends, ANormThatSwingsOrHasNoPastDoesNotJump) {
  EXPECT_EQ(raised(GradNorm, {1, 5, 0.6, 2, 9, 1, 4}), ".,.,.,.,.,.,.");
  EXPECT_EQ(raised(GradNorm, {1, 1, 1, 100}), ".,.,.,.");            // fewer looks than the window
  EXPECT_EQ(raised(GradNorm, {1, 1, 1, 1, NAN, 1}), ".,.,.,.,.,.");  // another rule's
  // A layer that begins without gradients has no usual norm.
  EXPECT_EQ(raised(GradNorm, {0, 0, 1, 0, 0, 1}, {{10, 4}, {}, {}, {}, {}}), ".,.,.,.,.,.");
}

TEST(Trends, ALayerWithoutGradientsOrOfZerosIsDead) {
  EXPECT_EQ(raised(GradNorm, {1, 0, 0, 0, 0, 1, 0, 0, 0}), ".,.,.,dead_layer,.,.,.,.,dead_layer");
  EXPECT_EQ(raised(OutputZeros, {0.995, 1, 0.99}), ".,.,dead_layer");
}

// A model that has nothing left to learn has no dead layers.
TEST(Trends, WhereNoLayerHasGradientsNoneIsDead) {
  LayerTrends a, b;
  a.layer = "a";
  b.layer = "b";
  a[GradNorm] = b[GradNorm] = 0;
  TrendWatch watch(kLimits);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(rules(watch.look({a, b})), "");
  b[GradNorm] = 1;
  EXPECT_EQ(rules(watch.look({a, b})), "");
  EXPECT_EQ(rules(watch.look({a, b})), "");
  EXPECT_EQ(rules(watch.look({a, b})), "dead_layer");
}

TEST(Trends, ALayerOfManyZerosLives) {
  EXPECT_EQ(raised(OutputZeros, {0.9, 0.95, 0.98, 0.9}), ".,.,.,.");  // relu
  EXPECT_EQ(raised(GradNorm, {0, 0, 0.1, 0, 0}), ".,.,.,.,.");        // how layers begin
  EXPECT_EQ(raised(OutputRms, {1, 1, 1, 1}), ".,.,.,.");              // no parameters: no norm
}

TEST(Trends, ValuesAtTheEndOfTheirTypeAreSaid) {
  EXPECT_EQ(raised(OutputSaturated, {0.0009, 0.002, 0.5}), ".,saturation,.");
  EXPECT_EQ(raised(GradientSaturated, {0.002}), "saturation");
  EXPECT_EQ(raised(OutputSaturated, {0.0001, 0.001}), ".,.");
}

// A scale that searches its height makes gradients infinite, by design.
TEST(Trends, TheSearchOfALossScaleIsNoNews) {
  TrendWatch watch(kLimits);
  for (const Trend t : {GradientSaturated, GradientNan}) {
    watch.step(1, true);
    EXPECT_EQ(rules(watch.look(look(t, 0.5))), "");
  }
  watch.step(1, true);
  EXPECT_EQ(rules(watch.look(look(OutputNan, 1))), "nan");  // that is not the scale's doing
}

TEST(Trends, NaNIsSaidWhereverItIs) {
  for (const Trend t : {OutputNan, GradientNan}) EXPECT_EQ(raised(t, {0, 3, 4}), ".,nan,.");
  EXPECT_EQ(raised(WeightNorm, {2, NAN, NAN}), ".,nan,.");
  EXPECT_EQ(raised_by_losses({2, NAN, INFINITY, 2}), ".,nan,.,.");
}

// Gradients carry it into every layer; where it comes from is told first.
TEST(Trends, WhatBeginsInOutputsComesFirst) {
  LayerTrends a, b;
  a.layer = "a";
  b.layer = "b";
  a[GradientNan] = b[GradientNan] = 5;
  b[OutputSaturated] = 0.1;
  TrendWatch watch(kLimits);
  const std::vector<TrendAlert> alerts = watch.look({a, b});
  ASSERT_EQ(alerts.size(), 3U);
  EXPECT_EQ(alerts[0].rule + alerts[0].layer, "saturationb");
  EXPECT_EQ(alerts[1].rule + alerts[1].layer, "nana");
  EXPECT_EQ(alerts[2].rule + alerts[2].layer, "nanb");
}

TEST(Trends, ALossFarAboveThoseBeforeIsASpike) {
  EXPECT_EQ(raised_by_losses({3, 3, 3, 2, 6.5, 7, 3, 3}), ".,.,.,.,loss_spike,.,.,.");
  EXPECT_EQ(raised_by_losses({-3, -3, -3, -3, 1}), ".,.,.,.,loss_spike");
  EXPECT_EQ(raised_by_losses({3, 3, 3, 3, 5.9, 3}), ".,.,.,.,.,.");
  // With fewer steps than the window the first loss says what is usual.
  EXPECT_EQ(raised_by_losses({3, 3, 5.9}), ".,.,.");
  EXPECT_EQ(raised_by_losses({3, 3.9, 8.4, 12.7, 16}), ".,.,loss_spike,.,.");
}

TEST(Trends, AWindowOf0IsNoRule) {
  const Limits none;
  EXPECT_EQ(raised(GradNorm, {0, 0, 1, 100, NAN}, none), ".,.,.,.,.");
  EXPECT_EQ(raised(OutputSaturated, {1, 1}, none), ".,.");
  EXPECT_EQ(raised(OutputNan, {1, 1}, none), ".,.");
  TrendWatch watch(none);
  for (const double loss : std::vector<double>{1, 100, NAN})
    EXPECT_EQ(rules(watch.step(loss, false)), "");
}

TEST(Trends, EveryRuleSaysWhatToDo) {
  for (const char* rule : {"norm_jump", "dead_layer", "saturation", "nan", "loss_spike"})
    EXPECT_NE(advice_on(rule, "runs/gpt", 3), "") << rule;
  EXPECT_EQ(advice_on("other", "runs/gpt", 3), "");
  // A step of a recipe, made anew, is its first, in which nothing may be amiss.
  EXPECT_NE(
      advice_on("nan", "my runs/gpt", 3).find("probe run 'my runs/gpt' --at 3 --task overflow"),
      std::string::npos);
}

// What is read again gives the alerts of what was written, to the bit.
TEST(Trends, LinesSayWhatTheRulesGoBy) {
  LayerTrends t;
  t.layer = "h.0.mlp";
  t[GradNorm] = 0.1 + 0.2;
  t[OutputRms] = NAN;
  t[OutputZeros] = 1.0 / 3;
  const std::string text = line_of(7, {t}).dump();
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const nlohmann::json line = nlohmann::json::parse(text);
  EXPECT_EQ(line["step"], 7);
  EXPECT_TRUE(line["trends"]["h.0.mlp"]["output_rms"].is_null());
  const std::vector<LayerTrends> back = layers_of(line["trends"]);
  ASSERT_EQ(back.size(), 1U);
  for (std::size_t i = 0; i < kTrendNames.size(); ++i) {
    ASSERT_EQ(back[0].numbers[i].has_value(), t.numbers[i].has_value()) << kTrendNames[i];
    if (t.numbers[i] && std::isfinite(*t.numbers[i])) {
      EXPECT_EQ(*back[0].numbers[i], *t.numbers[i]);
    }
  }
  EXPECT_TRUE(std::isnan(*back[0][OutputRms]));
}

// metrics.jsonl may be anybody's.
TEST(Trends, LinesOfOthersAreReadAsFarAsTheyGo) {
  for (const char* text : {"[]", "3", "null", R"({"a": 3})", R"({"a": {"grad_norm": "x"}})",
                           R"({"a": {"grad_norm": {}}})"}) {
    for (const LayerTrends& t : layers_of(nlohmann::json::parse(text)))
      EXPECT_FALSE(t[GradNorm].has_value()) << text;
  }
}

TEST(Trends, ThePageHasTheLargestOfEachGroup) {
  std::string text = R"({"step":1,"loss":2})"
                     "\n";
  for (int i = 0; i < 10; ++i) {
    std::vector<LayerTrends> layers;
    for (const char* name : {"wte", "h.10", "h.2"}) {
      layers.emplace_back().layer = name;
      layers.back()[GradNorm] = i == 4 ? 100 : i;
    }
    layers[0][OutputRms] = i == 7 ? NAN : 1;
    text += line_of(i + 1, layers).dump() + "\n";
  }
  text += line_of(5, TrendAlert{"norm_jump", "h.2", 100, "it jumps"}).dump() + "\n";
  text += line_of(6, TrendAlert{"nan", "", NAN, "the loss is not finite"}).dump() + "\n";
  text += line_of(9, TrendAlert{"nan", "h.2", NAN, "its weights are not finite"}).dump() + "\n";
  text += R"({"step": "x", "trends": {}})"
          "\n"
          R"({"step": 9, "alert")";
  const nlohmann::json page = trends_of(text, "runs/gpt", 5);
  EXPECT_EQ(page["layers"], (nlohmann::json{"wte", "h.10", "h.2"}));  // in their order
  EXPECT_EQ(page["names"], (nlohmann::json{"grad_norm", "output_rms"}));
  EXPECT_EQ(page["steps"].size(), page["numbers"]["grad_norm"][1].size());
  EXPECT_NE(page["numbers"]["grad_norm"][2].dump().find("100"), std::string::npos);
  EXPECT_NE(page["numbers"]["output_rms"][0].dump().find("null"), std::string::npos);
  EXPECT_EQ(page["numbers"]["output_rms"][1][0], false);
  EXPECT_EQ(page["alert_count"], 3);
  EXPECT_EQ(page["alerts"][0], (nlohmann::json{5, "norm_jump", "h.2", "it jumps"}));
  EXPECT_EQ(page["alerts"][1][2], "");
  EXPECT_EQ(page["advice"]["nan"], advice_on("nan", "runs/gpt", 5));  // where it began
}

TEST(Trends, ARunWithoutAMonitorHasNone) {
  const nlohmann::json page = trends_of(R"({"step":1,"loss":2})"
                                        "\n",
                                        "runs/gpt");
  EXPECT_TRUE(page["steps"].empty());
  EXPECT_EQ(page["alert_count"], 0);
}

}  // namespace
}  // namespace aloft::trends
