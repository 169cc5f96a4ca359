// Every f32 survives being split, and its upper part is what rounding to bf16 gives.
#include "scalar/split_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace aloft::scalar {
namespace {

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

// Every upper half with the lower halves at which something changes: signs, zeros, denormals, the
// largest floats and infinities are among them.
TEST(SplitFloat, EveryValueComesBackAndItsUpperPartIsTheRoundedOne) {
  std::vector<std::uint32_t> lower = {0, 1, 2, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff};
  for (std::uint32_t i = 0; i < 8; ++i) lower.push_back(0x1357u * (i + 1) & 0xffffu);
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper)
    for (std::uint32_t low : lower) {
      const std::uint32_t u = upper << 16 | low;
      const auto x = std::bit_cast<float>(u);
      const SplitFloat s = split(x);
      ASSERT_EQ(s.near.bits, bf16_of(x).bits) << std::hex << u;
      if (std::isnan(x))
        ASSERT_TRUE(std::isnan(join(s)) && std::signbit(join(s)) == std::signbit(x))
            << std::hex << u;
      else
        ASSERT_EQ(bits_of(join(s)), u);
      ASSERT_TRUE(!s.below || s.rest == kTieRest) << std::hex << u;
    }
}

TEST(SplitFloat, TheMidpointsOnBothSidesOfAnEvenValueDiffer) {
  const SplitFloat down = split(std::bit_cast<float>(0x3f808000u)),
                   up = split(std::bit_cast<float>(0x3f7f8000u));
  EXPECT_EQ(down.near.bits, 0x3f80);
  EXPECT_EQ(up.near.bits, 0x3f80);
  EXPECT_EQ(down.rest, up.rest);
  EXPECT_TRUE(down.below && !up.below);
}

TEST(SplitFloat, WhatIsSpecialStays) {
  const float inf = std::numeric_limits<float>::infinity();
  for (float x : {0.0f, -0.0f, inf, -inf, std::numeric_limits<float>::max(),
                  std::numeric_limits<float>::denorm_min(), -0x1p-133f})
    EXPECT_EQ(bits_of(join(split(x))), bits_of(x)) << x;
  EXPECT_EQ(split(std::numeric_limits<float>::max()).near.bits, 0x7f80);  // rounds to infinity
}

TEST(SplitFloat, RemaindersInMemoryAreWordsThenBits) {
  constexpr std::int64_t n = 11;
  std::vector<std::uint8_t> memory(rest_bytes(n), 0xff);
  memory[2 * n + 1] = 0;
  const Rests rests(memory.data(), n);
  std::vector<Bf16> near;
  const auto value = [](std::int64_t i) {
    return std::bit_cast<float>(0x3f808000u + static_cast<std::uint32_t>(i * 0x8000));
  };
  for (std::int64_t i = 0; i < n; ++i) near.push_back(put_split(rests, i, value(i)));
  for (std::int64_t i = 0; i < n; ++i)
    EXPECT_EQ(bits_of(joined(rests, near[i], i)), bits_of(value(i))) << i;
  EXPECT_EQ(rest_bytes(n), 24);
  EXPECT_EQ(memory[2 * n], 0x11);      // values 0 and 4 lie half a step above an even one
  EXPECT_EQ(memory[2 * n + 1], 0x01);  // so does 8; what fills up the byte is 0
}

}  // namespace
}  // namespace aloft::scalar
