// What optimizers keep in fewer bits: rounding to bf16 at random, and floats of 8 bits in blocks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "scalar/block_float.h"
#include "scalar/stochastic_rounding.h"

namespace aloft::scalar {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(StochasticRounding, WhatBf16HasStays) {
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    const auto x = std::bit_cast<float>(upper << 16);
    for (const std::uint16_t bits : {0, 1, 0x8000, 0xffff}) {
      const Bf16 y = bf16_at_random(x, bits);
      if (std::isnan(x))
        ASSERT_TRUE(std::isnan(f32_of(y)));
      else
        ASSERT_EQ(y.bits, upper);
    }
  }
}

// Over all 2^16 draws exactly: the share of those that go up is how near the upper one is.
TEST(StochasticRounding, IsRightInTheMean) {
  for (const float x : {1.00390625f, 1.0001f, -3.1415927f, 0x1.fffffep-20f, -1e-39f, 123456.7f}) {
    double sum = 0;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
      sum += f32_of(bf16_at_random(x, static_cast<std::uint16_t>(bits)));
    EXPECT_DOUBLE_EQ(sum / 0x10000, x);
  }
}

TEST(StochasticRounding, SlotsDrawDifferentBits) {
  const RandomKey key{1, 2, 0, 3};
  int same = 0;
  for (int a = 0; a <= kParameterSlot; ++a)
    for (int b = 0; b < a; ++b)
      for (std::uint64_t element = 0; element < 64; ++element)
        same += rounding_bits(key, a, element) == rounding_bits(key, b, element);
  EXPECT_LE(same, 2);  // of 2,304 pairs of 16 bits
}

class BlockFloat : public ::testing::TestWithParam<bool> {
 protected:
  BlockForm form() const { return {GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Forms, BlockFloat, ::testing::Bool());

TEST_P(BlockFloat, WhatACodeHasStaysAndCodesGrow) {
  float last = -1;
  for (std::uint32_t code = 0; code <= form().most(); ++code)
    for (const float scale : {1.0f, 0x1p-90f, 0x1p126f, 3e-7f}) {
      const float x = block_value(static_cast<std::uint8_t>(code), scale, form());
      for (const std::uint16_t bits : {0, 1, 0x7fff, 0xffff}) {
        const std::uint8_t again = block_code(x, scale, bits, form());
        if (scale != 3e-7f) {
          ASSERT_EQ(again, code) << scale << " " << bits;
        }
        // A scale that is no power of two rounds the value: one neighbour, seldom.
        ASSERT_LE(std::abs(int{again} - static_cast<int>(code)), 1);
      }
      if (scale != 1) continue;
      ASSERT_GT(x, last);
      last = x;
    }
  EXPECT_EQ(last, kBlockTop);
}

TEST_P(BlockFloat, IsRightInTheMean) {
  const float scale = block_scale(2.0f);
  for (const float x : {2.0f, 1.9f, 0.7f, 0.0123f, 3e-4f, 1e-5f}) {
    double sum = 0, least = 3, most = 0;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const float y = block_value(block_code(x, scale, static_cast<std::uint16_t>(bits), form()),
                                  scale, form());
      sum += y, least = std::min<double>(least, y), most = std::max<double>(most, y);
    }
    EXPECT_NEAR(sum / 0x10000, x, 1e-4 * x) << x;
    EXPECT_LE(least, x * (1 + 1e-6));
    EXPECT_GE(most, x * (1 - 1e-6));
  }
}

TEST_P(BlockFloat, SignsZerosAndWhatIsSpecial) {
  const float scale = block_scale(1.0f);
  const auto back = [&](float x, std::uint16_t bits = 0x8000) {
    return block_value(block_code(x, scale, bits, form()), scale, form());
  };
  EXPECT_EQ(back(0.0f), 0.0f);
  EXPECT_FLOAT_EQ(back(1.0f), 1.0f);
  EXPECT_FLOAT_EQ(back(-1.0f), GetParam() ? -1.0f : 0.0f);
  // Others divide by its root: what is not negative and not 0 stays above 0.
  EXPECT_EQ(back(1e-30f, 0) > 0, !GetParam());
  EXPECT_EQ(block_scale(0.0f), 0.0f);
  EXPECT_TRUE(std::isnan(block_scale(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_FLOAT_EQ(block_scale(kInfinity) * kBlockTop, kMostInBlock);
  EXPECT_TRUE(std::isfinite(
      block_value(static_cast<std::uint8_t>(form().most()), block_scale(kInfinity), form())));
  EXPECT_EQ(block_scale(1e-44f), kLeastScale);
}

TEST(BlockFloat, BytesTellHowManyElements) {
  for (std::int64_t n = 0; n < 3000; ++n) EXPECT_EQ(elements_of_blocks(block_bytes(n)), n);
}

}  // namespace
}  // namespace aloft::scalar
