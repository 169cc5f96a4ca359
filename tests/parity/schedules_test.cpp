// Learning rates against torch.optim.lr_scheduler, update by update.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "parity/parity_row.h"
#include "scalar/plateau.h"
#include "scalar/schedule.h"

namespace aloft::scalar {
namespace {

using Json = nlohmann::json;

Json find_case(const std::string& name) {
  std::ifstream file("tests/fixtures/schedules.json");
  const Json all = Json::parse(file);
  for (const Json& c : all.at("cases"))
    if (c.at("name") == name) return c;
  throw std::runtime_error("no schedule fixture " + name);
}

// Every rate from update `from` on.
void expect_same(const ScheduleRule& rule, const Json& c, int from = 0) {
  ASSERT_EQ(problem_of(rule), "");
  const double base = c.at("base");
  const auto rates = c.at("lr").get<std::vector<double>>();
  ASSERT_GE(rates.size(), 20u);
  parity::ParityRow row("schedule", c.at("name"), 1e-9);
  for (int i = from; i < static_cast<int>(rates.size()); ++i)
    row.see(base * schedule_factor(rule, i), rates[i], base, "update " + std::to_string(i));
}

TEST(SchedulesAgainstTorch, Constant) {
  expect_same({.kind = ScheduleKind::Constant}, find_case("constant"));
}

TEST(SchedulesAgainstTorch, Linear) {
  const Json c = find_case("linear");
  expect_same({.kind = ScheduleKind::Linear,
               .total = c["options"]["total_iters"],
               .min_factor = c["options"]["end_factor"]},
              c);
}

TEST(SchedulesAgainstTorch, Cosine) {
  const Json c = find_case("cosine");
  const double floor = c["options"]["eta_min"];
  expect_same({.kind = ScheduleKind::Cosine,
               .total = c["options"]["T_max"],
               .min_factor = floor / c["base"].get<double>()},
              c);
}

TEST(SchedulesAgainstTorch, Step) {
  const Json c = find_case("step");
  expect_same({.kind = ScheduleKind::Step,
               .step_size = c["options"]["step_size"],
               .gamma = c["options"]["gamma"]},
              c);
}

// pct_start is fixed at torch's default, 0.3, where no warm-up is named.
TEST(SchedulesAgainstTorch, OneCycle) {
  const Json c = find_case("one-cycle");
  expect_same({.kind = ScheduleKind::OneCycle,
               .total = c["options"]["total_steps"],
               .div = c["options"]["div_factor"],
               .final_div = c["options"]["final_div_factor"]},
              c);
}

TEST(SchedulesAgainstTorch, Polynomial) {
  const Json c = find_case("polynomial");
  expect_same({.kind = ScheduleKind::Polynomial,
               .total = c["options"]["total_iters"],
               .power = c["options"]["power"]},
              c);
}

TEST(SchedulesAgainstTorch, Exponential) {
  const Json c = find_case("exponential");
  expect_same({.kind = ScheduleKind::Exponential, .gamma = c["options"]["gamma"]}, c);
}

TEST(SchedulesAgainstTorch, MultiStep) {
  const Json c = find_case("multi-step");
  expect_same({.kind = ScheduleKind::MultiStep,
               .gamma = c["options"]["gamma"],
               .milestones = c["options"]["milestones"].get<std::vector<std::int64_t>>()},
              c);
}

TEST(SchedulesAgainstTorch, CosineRestarts) {
  for (const char* name : {"cosine-restarts", "cosine-cycles"}) {
    const Json c = find_case(name);
    const double floor = c["options"]["eta_min"];
    expect_same({.kind = ScheduleKind::CosineRestarts,
                 .min_factor = floor / c["base"].get<double>(),
                 .cycle = c["options"]["T_0"],
                 .growth = c["options"]["T_mult"]},
                c);
  }
}

TEST(SchedulesAgainstTorch, Plateau) {
  for (const char* name : {"plateau", "plateau-cooldown"}) {
    const Json c = find_case(name), o = c["options"];
    const double base = c["base"];
    const PlateauRule rule{.factor = o["factor"],
                           .patience = o["patience"],
                           .threshold = o.value("threshold", 1e-4),
                           .cooldown = o.value("cooldown", 0),
                           .least = o.value("min_lr", 0.0) / base};
    PlateauState state;
    const auto rates = c.at("lr").get<std::vector<double>>();
    parity::ParityRow row("schedule", name, 1e-9);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      state = next_plateau(state, rule, c.at("losses").at(i));
      row.see(base * state.factor, rates[i], base, "loss " + std::to_string(i));
    }
    EXPECT_LT(rates.back(), 0.5 * base) << name;
  }
}

// transformers' warm-up begins at 0; ours with the first share of the rate.
TEST(SchedulesAgainstTorch, InverseSqrt) {
  const Json c = find_case("inverse-sqrt");
  const std::int64_t warmup = c["options"]["warmup"];
  expect_same({.kind = ScheduleKind::InverseSqrt, .warmup = warmup}, c, static_cast<int>(warmup));
}

// nanoGPT's warm-up divides by warmup + 1 and so never reaches the full rate before the cosine;
// ours reaches it at the last update of the warm-up. The cosine is the same.
TEST(SchedulesAgainstTorch, CosineAfterWarmup) {
  const Json c = find_case("cosine-warmup");
  const std::int64_t warmup = c["options"]["warmup"];
  const double base = c["base"], floor = c["options"]["floor"];
  const ScheduleRule rule{.kind = ScheduleKind::Cosine,
                          .warmup = warmup,
                          .total = c["steps"],
                          .min_factor = floor / base};
  expect_same(rule, c, static_cast<int>(warmup));
  const double w = static_cast<double>(warmup);
  for (int i = 0; i < warmup; ++i)
    EXPECT_NEAR(base * schedule_factor(rule, i) * w / (w + 1), c["lr"][i].get<double>(), 1e-12);
}

}  // namespace
}  // namespace aloft::scalar
