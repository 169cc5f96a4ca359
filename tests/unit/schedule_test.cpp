#include "scalar/schedule.h"

#include <gtest/gtest.h>

namespace aloft::scalar {
namespace {

using enum ScheduleKind;

static_assert(parse_schedule_kind("one-cycle") == OneCycle && !parse_schedule_kind("cosin"));

TEST(Schedule, RulesThatCannotBeFollowedSayWhy) {
  EXPECT_EQ(problem_of({.kind = Cosine, .warmup = 100, .total = 2000}), "");
  EXPECT_NE(problem_of({.kind = Cosine}), "");
  EXPECT_NE(problem_of({.kind = Linear, .warmup = 11, .total = 10}), "");
  EXPECT_NE(problem_of({.kind = Step}), "");
  EXPECT_NE(problem_of({.kind = Wsd, .total = 10, .decay = 11}), "");
  EXPECT_NE(problem_of({.kind = Polynomial, .total = 10, .power = 0}), "");
  EXPECT_NE(problem_of({.kind = Exponential, .gamma = 0}), "");
  EXPECT_NE(problem_of({.kind = MultiStep}), "");
  EXPECT_NE(problem_of({.kind = MultiStep, .milestones = {5, 3}}), "");
  EXPECT_NE(problem_of({.kind = CosineRestarts}), "");
  EXPECT_NE(problem_of({.kind = CosineRestarts, .cycle = 5, .growth = 0}), "");
  EXPECT_NE(problem_of({.kind = Linear, .total = 9, .start_factor = 2}), "");
  EXPECT_NE(problem_of({.kind = Linear, .warmup = 2, .total = 9, .start_factor = 0.5}), "");
  EXPECT_NE(problem_of({.kind = LowStart}), "");
  EXPECT_NE(problem_of({.kind = Triangular}), "");
  EXPECT_NE(problem_of({.kind = Triangular, .warmup = 1, .step_size = 5}), "");
  EXPECT_NE(problem_of({.kind = Triangular, .step_size = 5, .step_down = -1}), "");
  EXPECT_NE(problem_of({.kind = ExpRange, .step_size = 5, .gamma = 2}), "");
  EXPECT_NE(problem_of({.kind = Table}), "");
  EXPECT_NE(problem_of({.kind = Table, .factors = {1, -1}}), "");
  EXPECT_NE(problem_of({.kind = Table, .factors = {1, 1e300}}), "");  // inf in fp32
  EXPECT_NE(problem_of(tabulated([](std::int64_t) { return 1; }, kMostTableFactors + 5)), "");
  EXPECT_NE(problem_of({.kind = Product}), "");
  EXPECT_NE(problem_of({.kind = Product, .parts = {{.kind = Plateau}}}), "");
  EXPECT_NE(problem_of({.kind = Product, .parts = {{.kind = Cosine}}}), "");  // without a total
  EXPECT_NE(problem_of({.kind = Sequence, .parts = {{}, {}}}), "");
  EXPECT_NE(problem_of({.kind = Sequence, .milestones = {4, 4}, .parts = {{}, {}, {}}}), "");
  EXPECT_EQ(problem_of({.kind = Sequence, .milestones = {4}, .parts = {{}, {}}}), "");
}

TEST(Schedule, WarmUpReachesOneOnItsLastUpdate) {
  for (ScheduleKind kind : kAllScheduleKinds) {
    if (kind == OneCycle || begins_itself(kind)) continue;
    const ScheduleRule r{
        .kind = kind, .warmup = 4, .total = 100, .step_size = 10, .milestones = {10}, .cycle = 10};
    EXPECT_DOUBLE_EQ(schedule_factor(r, 0), 0.25) << name_of(kind);
    EXPECT_DOUBLE_EQ(schedule_factor(r, 2), 0.75) << name_of(kind);
    EXPECT_DOUBLE_EQ(schedule_factor(r, 3), 1.0) << name_of(kind);
    EXPECT_DOUBLE_EQ(schedule_factor(r, 4), 1.0) << name_of(kind);
  }
}

TEST(Schedule, HandComputedValues) {
  const ScheduleRule linear{.kind = Linear, .total = 10, .min_factor = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(linear, 5), 0.55);
  EXPECT_DOUBLE_EQ(schedule_factor(linear, 10), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(linear, 10000), 0.1);

  // 1e-3 to 1e-4 over 2,000 updates, 100 of warm-up.
  const ScheduleRule cosine{.kind = Cosine, .warmup = 100, .total = 2000, .min_factor = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(cosine, 1050), 0.55);                // p = 1/2
  EXPECT_NEAR(schedule_factor(cosine, 575), 0.868198051533946, 1e-14);  // p = 1/4
  EXPECT_DOUBLE_EQ(schedule_factor(cosine, 2000), 0.1);

  const ScheduleRule step{
      .kind = Step, .warmup = 2, .min_factor = 0.2, .step_size = 3, .gamma = 0.5};
  const double expected[] = {0.5, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2};
  for (int s = 0; s < 13; ++s) EXPECT_DOUBLE_EQ(schedule_factor(step, s), expected[s]) << s;

  const ScheduleRule wsd{.kind = Wsd, .warmup = 2, .total = 20, .min_factor = 0.5, .decay = 4};
  EXPECT_DOUBLE_EQ(schedule_factor(wsd, 16), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(wsd, 17), 0.875);
  EXPECT_DOUBLE_EQ(schedule_factor(wsd, 19), 0.625);
  EXPECT_DOUBLE_EQ(schedule_factor(wsd, 20), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor({.kind = Wsd, .total = 20}, 18), 0.5);  // a fifth: 4 updates
}

TEST(Schedule, HandComputedValuesOfFreeForms) {
  const ScheduleRule polynomial{.kind = Polynomial, .total = 10, .min_factor = 0.5, .power = 2};
  EXPECT_DOUBLE_EQ(schedule_factor(polynomial, 5), 0.625);
  EXPECT_DOUBLE_EQ(schedule_factor(polynomial, 10), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(polynomial, 11), 0.5);

  const ScheduleRule exponential{.kind = Exponential, .warmup = 2, .min_factor = 0.1, .gamma = 0.5};
  const double falling[] = {0.5, 1, 1, 0.5, 0.25, 0.125, 0.1, 0.1};
  for (int s = 0; s < 8; ++s) EXPECT_DOUBLE_EQ(schedule_factor(exponential, s), falling[s]) << s;

  const ScheduleRule drops{.kind = MultiStep, .gamma = 0.5, .milestones = {0, 2, 2, 5}};
  const double dropping[] = {0.5, 0.5, 0.125, 0.125, 0.125, 0.0625};
  for (int s = 0; s < 6; ++s) EXPECT_DOUBLE_EQ(schedule_factor(drops, s), dropping[s]) << s;

  EXPECT_DOUBLE_EQ(schedule_factor({.kind = InverseSqrt, .warmup = 4}, 4), 1);
  EXPECT_DOUBLE_EQ(schedule_factor({.kind = InverseSqrt, .warmup = 4}, 16), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor({.kind = InverseSqrt}, 30000), 0.5);

  // Cycles of 2, 4 and 8 updates, behind a warm-up of 3.
  const ScheduleRule restarts{
      .kind = CosineRestarts, .warmup = 3, .min_factor = 0.5, .cycle = 2, .growth = 2};
  EXPECT_DOUBLE_EQ(schedule_factor(restarts, 3), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(restarts, 4), 0.75);
  EXPECT_DOUBLE_EQ(schedule_factor(restarts, 5), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(restarts, 7), 0.75);
  EXPECT_DOUBLE_EQ(schedule_factor(restarts, 9), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(restarts, 13), 0.75);
  EXPECT_DOUBLE_EQ(schedule_factor(restarts, 17), 1);
}

TEST(Schedule, HandComputedValuesOfRisesAndFalls) {
  const ScheduleRule rise{.kind = Linear, .total = 4, .min_factor = 1, .start_factor = 0.5};
  const double rising[] = {0.5, 0.625, 0.75, 0.875, 1, 1};
  for (int s = 0; s < 6; ++s) EXPECT_DOUBLE_EQ(schedule_factor(rise, s), rising[s]) << s;

  const ScheduleRule low{.kind = LowStart, .step_size = 2, .start_factor = 0.25};
  const double stepping[] = {0.25, 0.25, 1, 1};
  for (int s = 0; s < 4; ++s) EXPECT_DOUBLE_EQ(schedule_factor(low, s), stepping[s]) << s;

  // Two up, four down.
  ScheduleRule r{.kind = Triangular, .min_factor = 0.5, .step_size = 2, .step_down = 4};
  const double once[] = {0.5, 0.75, 1, 0.875, 0.75, 0.625};
  for (int s = 0; s < 18; ++s) EXPECT_DOUBLE_EQ(schedule_factor(r, s), once[s % 6]) << s;
  r.kind = Triangular2;
  EXPECT_DOUBLE_EQ(schedule_factor(r, 8), 0.75);
  EXPECT_DOUBLE_EQ(schedule_factor(r, 14), 0.625);
  r.kind = ExpRange, r.gamma = 0.5;
  EXPECT_DOUBLE_EQ(schedule_factor(r, 2), 0.5 + 0.5 / 4);
  EXPECT_DOUBLE_EQ(schedule_factor(r, 8), 0.5 + 0.5 / 256);
}

TEST(Schedule, OfFunctionsAndOfSchedules) {
  int asked = 0;
  const ScheduleRule table =
      tabulated([&](std::int64_t s) { return ++asked, 1.0 / static_cast<double>(s + 1); }, 4);
  EXPECT_EQ(asked, 4);
  const double inverse[] = {1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 4};
  for (int s = 0; s < 5; ++s) EXPECT_EQ(schedule_factor(table, s), inverse[s]) << s;
  const ScheduleRule powers = multiplied([](std::int64_t) { return 0.5; }, 3);
  for (const auto& [s, want] : {std::pair{0, 1.0}, {1, 0.5}, {2, 0.25}, {9, 0.25}})
    EXPECT_EQ(schedule_factor(powers, s), want) << s;

  const ScheduleRule rise{.kind = Linear, .total = 4, .min_factor = 1, .start_factor = 0.5};
  const ScheduleRule fall{.kind = Exponential, .gamma = 0.5};
  const ScheduleRule both{.kind = Sequence, .milestones = {3}, .parts = {rise, fall}};
  const double in_turn[] = {0.5, 0.625, 0.75, 1, 0.5, 0.25};
  for (int s = 0; s < 6; ++s) EXPECT_DOUBLE_EQ(schedule_factor(both, s), in_turn[s]) << s;
  const ScheduleRule product{.kind = Product, .parts = {rise, fall}};
  for (int s = 0; s < 6; ++s)
    EXPECT_DOUBLE_EQ(schedule_factor(product, s),
                     schedule_factor(rise, s) * schedule_factor(fall, s));
}

TEST(Schedule, OneCycleIsTorchs) {
  // torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps=10): get_last_lr() step by step.
  const ScheduleRule r{.kind = OneCycle, .total = 10};
  const double expected[] = {0.04,
                             0.52,
                             1.0,
                             0.9504846320134737,
                             0.8117456539497631,
                             0.6112620219362892,
                             0.3887419780637108,
                             0.18825834605023694,
                             0.04951936798652629,
                             4e-06};
  // torch's numbers have gone through differences of its own: nine digits agree.
  for (int s = 0; s < 10; ++s) EXPECT_NEAR(schedule_factor(r, s), expected[s], 1e-9) << s;
  EXPECT_NEAR(schedule_factor(r, 100), 4e-6, 1e-12);
  EXPECT_DOUBLE_EQ(schedule_factor({.kind = OneCycle, .warmup = 5, .total = 10}, 4), 1.0);
}

TEST(Schedule, StaysWithinZeroAndOneOnOddRules) {
  for (ScheduleKind kind : kAllScheduleKinds)
    for (std::int64_t total : {1, 2, 3, 7})
      for (std::int64_t warmup = 0; warmup <= total; ++warmup)
        for (std::int64_t s = -1; s < 12; ++s) {
          const double f = schedule_factor(
              {.kind = kind, .warmup = warmup, .total = total, .step_size = 2, .decay = 1}, s);
          EXPECT_TRUE(f >= 0.0 && f <= 1.0)
              << name_of(kind) << " " << total << " " << s << " " << f;
        }
}

}  // namespace
}  // namespace aloft::scalar
