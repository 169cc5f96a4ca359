// How angles of rotary positions are stretched: what each kind does at its ends, its text, and what
// cannot be one.
#include "types/rotary_scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace aloft {
namespace {

// Turns within `positions` positions.
double turns_within(double rate, double positions) {
  return rate * positions / (2 * std::numbers::pi);
}

TEST(RotaryScaling, LeavesAnglesAloneOrDividesAllOfThem) {
  const RotaryRates plain = rotary_rates({}, 10000, 8);
  ASSERT_EQ(plain.turns.size(), 4U);
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(plain.turns[i], std::pow(10000, -i / 4.0));
  EXPECT_EQ(plain.magnitude, 1);
  RotaryScaling linear;
  linear.kind = "linear", linear.factor = 4;
  const RotaryRates slower = rotary_rates(linear, 10000, 8);
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(slower.turns[i], plain.turns[i] / 4);
}

// Llama 3.1's: fast pairs as they were, slow ones an eighth, none faster than before.
TEST(RotaryScaling, OfLlama3MeetsAtItsBounds) {
  RotaryScaling s;
  s.kind = "llama3", s.factor = 8, s.original = 8192, s.low = 1, s.high = 4;
  const RotaryRates plain = rotary_rates({}, 500000, 128), got = rotary_rates(s, 500000, 128);
  int kept = 0, whole = 0, between = 0;
  for (std::size_t i = 0; i < got.turns.size(); ++i) {
    const double share = got.turns[i] / plain.turns[i], turns = turns_within(plain.turns[i], 8192);
    if (turns > 4) {
      EXPECT_EQ(share, 1);
      ++kept;
    } else if (turns < 1) {
      EXPECT_DOUBLE_EQ(share, 1.0 / 8);
      ++whole;
    } else {
      EXPECT_TRUE(share >= 1.0 / 8 && share <= 1) << share;
      ++between;
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(whole, 0);
  EXPECT_GT(between, 0);
}

TEST(RotaryScaling, OfYarnGoesFromTheFastToTheSlow) {
  RotaryScaling s;
  s.kind = "yarn", s.factor = 4, s.original = 32768;
  const RotaryRates plain = rotary_rates({}, 1e6, 128), got = rotary_rates(s, 1e6, 128);
  double before = 1;
  for (std::size_t i = 0; i < got.turns.size(); ++i) {
    const double share = got.turns[i] / plain.turns[i];
    EXPECT_LE(share, before) << i;
    before = share;
  }
  EXPECT_EQ(got.turns.front(), plain.turns.front());
  EXPECT_DOUBLE_EQ(before, 0.25);
  EXPECT_DOUBLE_EQ(yarn_magnitude(4), 0.1 * std::log(4) + 1);
  EXPECT_EQ(yarn_magnitude(4, 1, 1), 1);
  EXPECT_EQ(yarn_magnitude(0.5), 1);
}

TEST(RotaryScaling, OfLongropeLooksAtTheLength) {
  const auto s = parse_rotary_scaling("longrope original=16 within=1,2 beyond=4,8");
  ASSERT_TRUE(s);
  const RotaryRates plain = rotary_rates({}, 100, 4), got = rotary_rates(*s, 100, 4);
  EXPECT_DOUBLE_EQ(got.of(16)[1], plain.turns[1] / 2);
  EXPECT_DOUBLE_EQ(got.of(17)[1], plain.turns[1] / 8);
  EXPECT_DOUBLE_EQ(longrope_magnitude(32, 4096), std::sqrt(1 + std::log(32) / std::log(4096)));
  EXPECT_EQ(longrope_magnitude(1, 4096), 1);
}

TEST(RotaryScaling, IsTheTextThatItWrote) {
  EXPECT_EQ(RotaryScaling().str(), "");
  for (const char* text : {"linear factor=4", "llama3 factor=8 original=8192 low=1 high=4",
                           "yarn factor=4 original=32768 magnitude=1.138629436111989 truncate=0",
                           "longrope original=4096 magnitude=1.25 within=1,1.05 beyond=4,64.1"}) {
    const auto s = parse_rotary_scaling(text);
    ASSERT_TRUE(s) << text;
    EXPECT_EQ(s->str(), text);
    EXPECT_EQ(need_of(*s, 10000, 4), "") << text;
  }
  for (const char* text :
       {"linear factor", "linear factor=", "linear factor=x", "linear factor=1,2", "linear size=3",
        "yarn truncate=2", "longrope within=1,,2", "linear  "})
    EXPECT_FALSE(parse_rotary_scaling(text)) << text;
}

TEST(RotaryScaling, ThatCannotBeSaysWhatItNeeds) {
  for (const char* text :
       {"ntk factor=2", "linear factor=0", "linear factor=nan", "llama3 factor=8 low=1 high=4",
        "llama3 factor=8 original=64 low=4 high=4", "yarn factor=4",
        "yarn factor=4 original=8 slow=0", "longrope original=16 within=1 beyond=1,2",
        "longrope original=16 within=1,0 beyond=1,2", "linear factor=2 magnitude=0"}) {
    const auto s = parse_rotary_scaling(text);
    ASSERT_TRUE(s) << text;
    EXPECT_NE(need_of(*s, 10000, 4), "") << text;
  }
  EXPECT_NE(need_of(*parse_rotary_scaling("yarn factor=4 original=8"), 1, 4), "");
}

}  // namespace
}  // namespace aloft
