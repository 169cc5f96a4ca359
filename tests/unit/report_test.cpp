// The report's curves: what is drawn says what was measured, where it was measured.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "observe/report/curves.h"

namespace aloft {
namespace {

using nlohmann::json;

std::string step_line(int step, double loss, double scale = 1, bool skipped = false,
                      double rate = 10) {
  json j = {{"step", step},         {"loss", loss},        {"lr", 0.1},
            {"grad_norm", 1},       {"loss_scale", scale}, {"skipped", skipped},
            {"tokens_per_s", rate}, {"time_s", step * 0.5}};
  if (!std::isfinite(loss)) j["loss"] = nullptr;
  if (skipped) j["culprit"] = "h.0.weight";
  return j.dump() + "\n";
}

// An exponential mean of a falling loss stands above it for hundreds of steps.
TEST(Curves, SmoothingDoesNotLag) {
  for (const std::size_t most : {2000, 100}) {
    std::string text;
    constexpr int kSteps = 1000;
    for (int i = 1; i <= kSteps; ++i) text += step_line(i, 10 - 0.009 * i);
    const json curves = curves_of(text, {}, most);
    ASSERT_EQ(curves["step"].size(), std::min<std::size_t>(kSteps, most));
    for (std::size_t i = 0; i < curves["step"].size(); ++i) {
      const double x = curves["step"][i];
      // The page's numbers have six digits.
      EXPECT_NEAR(curves["loss"][i].get<double>(), 10 - 0.009 * x, 1e-5) << x;
      EXPECT_NEAR(curves["loss_smoothed"][i].get<double>(), 10 - 0.009 * x, 1e-5) << x;
    }
  }
}

TEST(Curves, SmoothingTakesNoiseAwayAndPassesOverWhatIsNotFinite) {
  std::string text;
  for (int i = 1; i <= 1000; ++i) text += step_line(i, i == 500 ? NAN : 3 + (i % 2 ? 0.5 : -0.5));
  const json curves = curves_of(text);
  EXPECT_TRUE(curves["loss_smoothed"][499].is_null());
  for (const int i : {100, 400, 501, 800})  // alternating halves: a tenth of the swing is left
    EXPECT_NEAR(curves["loss_smoothed"][i].get<double>(), 3, 0.05) << i;
}

// As many tokens took as long as the page says, also where some steps were fast.
TEST(Curves, RatesAreThoseOfAllTokensTogether) {
  for (const std::size_t most : {2000, 100}) {
    std::string text;
    for (int i = 1; i <= 1000; ++i) text += step_line(i, 3, 1, false, i % 10 == 0 ? 1000 : 10);
    const json curves = curves_of(text, {}, most);
    const std::size_t count = curves["step"].size();
    for (std::size_t i = count / 4; i < count * 3 / 4; ++i)
      EXPECT_NEAR(curves["rate_smoothed"][i].get<double>(), 11.1, 0.3) << i;
  }
}

// Losses that jump where the run was gone on with: no mean lies between.
TEST(Curves, SmoothingDoesNotReachAcrossAResume) {
  std::string text;
  for (int i = 1; i <= 1000; ++i) text += step_line(i, i <= 400 ? 2 : i <= 403 ? 5 : 9);
  const std::vector<double> resumes = {403, 400, 400, 0, 5000};
  const json curves = curves_of(text, resumes);
  EXPECT_EQ(curves["loss_smoothed"], curves["loss"]);
  EXPECT_NE(curves_of(text)["loss_smoothed"], curves["loss"]);
  EXPECT_EQ(curves_of("", resumes)["loss_smoothed"], json::array());
}

TEST(Curves, TheLastStepIsTheLastStepHoweverManyThereAre) {
  std::string text;
  for (int i = 1; i <= 4321; ++i) text += step_line(i, i);
  const json curves = curves_of(text, {}, 100);
  EXPECT_EQ(curves["last"], (json{{"step", 4321}, {"loss", 4321}, {"time_s", 2160.5}}));
  EXPECT_EQ(curves["first_loss"], 1);  // not a group's mean
  EXPECT_EQ(curves_of("")["last"]["loss"], nullptr);
  EXPECT_EQ(curves_of("")["first_loss"], nullptr);
}

TEST(Curves, SkippedStepsSitOnTheLine) {
  std::string text;
  for (int i = 1; i <= 1000; ++i) {
    const bool skipped = i == 3 || i == 500 || i == 501;
    text += step_line(i, 2, i <= 3 ? 1024 : i <= 500 ? 512 : i <= 501 ? 256 : 128, skipped);
  }
  const json whole = curves_of(text);
  EXPECT_EQ(whole["skips"], json::parse(R"([[3, "h.0.weight", 1024], [500, "h.0.weight", 512],
                                            [501, "h.0.weight", 256]])"));
  const json grouped = curves_of(text, {}, 50);
  for (const json& skip : grouped["skips"]) {
    double on_line = 0;  // the value of the last point at or before it
    for (std::size_t i = 0; i < grouped["step"].size(); ++i)
      if (i == 0 || grouped["step"][i] <= skip[0]) on_line = grouped["loss_scale"][i];
    EXPECT_EQ(skip[2].get<double>(), on_line) << skip;
  }
}

TEST(Curves, EvaluationsKeepTheirBitsAByteAndTheirNaN) {
  const json curves = curves_of(
      "{\"step\":5,\"val_loss\":2.5,\"val_bits_per_byte\":1.25}\n{\"step\":9,\"val_loss\":null}\n");
  EXPECT_EQ(curves["evaluations"],
            json::parse(R"([[5, 2.5, {"bits_per_byte": 1.25}], [9, null, {}]])"));
}

TEST(Curves, StepsThatNoRunReachesAreLeftOut) {
  std::string text;
  for (const char* step : {"1e308", "1e308", "1e308", "-1e308", "1e999", "null", "\"x\"", "[1]"})
    text += std::string("{\"step\":") + step + ",\"loss\":1,\"skipped\":true}\n";
  const json curves = curves_of(text + step_line(4, 2, 1, true), {}, 2);
  EXPECT_EQ(curves["step"], json::parse("[4]"));
  EXPECT_EQ(curves["skips"].size(), 1u);
}

}  // namespace
}  // namespace aloft
