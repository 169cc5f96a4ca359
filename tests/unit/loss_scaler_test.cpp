#include "scalar/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace aloft::scalar {
namespace {

constexpr ScalerRule kShort{.kind = ScalerKind::Dynamic, .init = 1024, .growth_interval = 3};

static_assert(initial_state(dynamic_scaler()) == ScalerState{65536.0f, 0, 0, 0});
static_assert(initial_state(no_scaler()).scale == 1.0f);
static_assert(initial_state(fixed_scaler()).scale == 128.0f);
static_assert(next({1024, 1, 0, 0}, true, kShort) == ScalerState{1024, 2, 0, 0});
static_assert(next({1024, 2, 0, 7}, true, kShort) == ScalerState{2048, 0, 0, 7});  // growth
static_assert(next({1024, 2, 0, 7}, false, kShort) == ScalerState{512, 0, 1, 8});  // backoff
static_assert(next({1, 1, 4, 4}, false, kShort) == ScalerState{1, 0, 5, 5});       // floor
static_assert(next({16777216, 2, 0, 0}, true, kShort) == ScalerState{16777216, 0, 0, 0});
static_assert(next({128, 0, 0, 0}, false, fixed_scaler()) == ScalerState{128, 0, 1, 1});
static_assert(next({1, 0, 3, 9}, true, no_scaler()) == ScalerState{1, 0, 0, 9});
static_assert(next({1, 0, 3, 9}, false, no_scaler()) == ScalerState{1, 0, 4, 10});
static_assert(!must_give_up({1, 0, 999, 999}, dynamic_scaler()));
static_assert(must_give_up({1, 0, 1000, 1000}, dynamic_scaler()));
static_assert(problem_of(dynamic_scaler()).empty() && problem_of(fixed_scaler()).empty());

TEST(LossScaler, ThePublishedSequence) {
  const ScalerRule rule = dynamic_scaler();
  ScalerState s = initial_state(rule);
  for (int i = 0; i < 1999; ++i) s = next(s, true, rule);
  EXPECT_EQ(s, (ScalerState{65536.0f, 1999, 0, 0}));
  s = next(s, true, rule);
  EXPECT_EQ(s, (ScalerState{131072.0f, 0, 0, 0}));
  for (int i = 0; i < 20 * 2000; ++i) s = next(s, true, rule);
  EXPECT_EQ(s.scale, 0x1p24f);
  for (int i = 0; i < 24; ++i) s = next(s, false, rule);
  EXPECT_EQ(s, (ScalerState{1.0f, 0, 24, 24}));
  for (int i = 0; i < 975; ++i) s = next(s, false, rule);
  EXPECT_FALSE(must_give_up(s, rule));
  EXPECT_TRUE(must_give_up(next(s, false, rule), rule));
  s = next(s, true, rule);
  EXPECT_EQ(s, (ScalerState{1.0f, 1, 0, 999}));
}

// An independent reading of the specification: recomputed from the whole history of the run.
float scale_of_history(const std::vector<bool>& finite, const ScalerRule& rule) {
  if (rule.kind != ScalerKind::Dynamic) return rule.kind == ScalerKind::Fixed ? rule.init : 1.0f;
  double exponent = std::log2(rule.init);  // powers of two: exact in log space
  std::size_t since = 0;
  for (std::size_t i = 0; i < finite.size(); ++i) {
    if (!finite[i]) {
      exponent = std::max(exponent - 1, std::log2(static_cast<double>(rule.min)));
      since = i + 1;
    } else if ((i + 1 - since) % static_cast<std::size_t>(rule.growth_interval) == 0) {
      exponent = std::min(exponent + 1, std::log2(static_cast<double>(rule.max)));
    }
  }
  return static_cast<float>(std::exp2(exponent));
}

TEST(LossScaler, RandomSequencesEqualTheHistory) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    ScalerRule rule = round % 5 == 0 ? fixed_scaler(64) : dynamic_scaler();
    if (round % 7 == 0) rule = no_scaler();
    rule.growth_interval = 1 + static_cast<int>(random() % 6);
    rule.max = std::exp2f(static_cast<float>(17 + random() % 4));
    rule.min = std::exp2f(static_cast<float>(random() % 14));
    const unsigned percent = random() % 60;
    ScalerState s = initial_state(rule);
    std::vector<bool> history;
    for (int i = 0; i < 150; ++i) {
      history.push_back(random() % 100 >= percent);
      s = next(s, history.back(), rule);
      std::int64_t skipped = 0;
      std::int32_t run = 0;
      for (bool ok : history) skipped += !ok, run = ok ? 0 : run + 1;
      ASSERT_EQ(s.scale, scale_of_history(history, rule));
      ASSERT_EQ(s.skipped, skipped);
      ASSERT_EQ(s.overflow_run, run);
    }
  }
}

TEST(LossScaler, ProblemsAreNamed) {
  auto with = [](auto change) {
    ScalerRule rule = dynamic_scaler();
    change(rule);
    return std::string(problem_of(rule));
  };
  EXPECT_NE(with([](ScalerRule& r) { r.init = 0; }), "");
  EXPECT_NE(with([](ScalerRule& r) { r.init = NAN; }), "");
  EXPECT_NE(with([](ScalerRule& r) { r.init = INFINITY; }), "");
  EXPECT_NE(with([](ScalerRule& r) { r.growth = 1; }), "");
  EXPECT_NE(with([](ScalerRule& r) { r.backoff = 1; }), "");
  EXPECT_NE(with([](ScalerRule& r) { r.growth_interval = 0; }), "");
  EXPECT_NE(with([](ScalerRule& r) { r.min = 1e9f; }), "");
  EXPECT_NE(with([](ScalerRule& r) { r.init = 0x1p25f; }), "");
  EXPECT_NE(with([](ScalerRule& r) { r.give_up_after = 0; }), "");
}

}  // namespace
}  // namespace aloft::scalar
