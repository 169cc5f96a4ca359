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

TEST(SchedulesAgainstTorch, LinearRises) {
  const Json c = find_case("linear-rise");
  expect_same({.kind = ScheduleKind::Linear,
               .total = c["options"]["total_iters"],
               .min_factor = c["options"]["end_factor"],
               .start_factor = c["options"]["start_factor"]},
              c);
}

TEST(SchedulesAgainstTorch, LowStart) {
  const Json c = find_case("low-start");
  expect_same({.kind = ScheduleKind::LowStart,
               .step_size = c["options"]["total_iters"],
               .start_factor = c["options"]["factor"]},
              c);
}

TEST(SchedulesAgainstTorch, Triangles) {
  for (const auto kind :
       {ScheduleKind::Triangular, ScheduleKind::Triangular2, ScheduleKind::ExpRange}) {
    const Json c = find_case(std::string(name_of(kind))), o = c["options"];
    expect_same({.kind = kind,
                 .min_factor = o["base_lr"].get<double>() / o["max_lr"].get<double>(),
                 .step_size = o["step_size_up"],
                 .gamma = o["gamma"],
                 .step_down = o["step_size_down"]},
                c);
  }
}

TEST(SchedulesAgainstTorch, Functions) {
  const auto half = [](std::int64_t s) { return 1 / (1 + 0.5 * static_cast<double>(s)); };
  const auto less = [](std::int64_t s) { return 1 - 0.5 / static_cast<double>(s + 1); };
  const Json c = find_case("table");
  expect_same(tabulated(half, c["steps"]), c);
  expect_same(multiplied(less, c["steps"]), find_case("multiplied"));
}

TEST(SchedulesAgainstTorch, SeveralSchedules) {
  const ScheduleRule rise{
      .kind = ScheduleKind::Linear, .total = 5, .min_factor = 1, .start_factor = 0.25};
  const ScheduleRule cosine{.kind = ScheduleKind::Cosine, .total = 20};
  const ScheduleRule fall{.kind = ScheduleKind::Exponential, .gamma = 0.9};
  expect_same({.kind = ScheduleKind::Sequence,
               .milestones = {5, 25},
               .parts = {rise, cosine, {.kind = ScheduleKind::Step, .step_size = 4}}},
              find_case("sequence"));
  expect_same({.kind = ScheduleKind::Product, .parts = {rise, fall}}, find_case("product"));
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
