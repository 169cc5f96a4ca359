#include "scalar/float_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace aloft::scalar {
namespace {

// The judge: a 16-bit format decoded in plain arithmetic, and rounding by searching neighbours.
double value_of(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int field = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (field == (1 << exponent_bits) - 1)
    return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (field == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), field - bias - mantissa_bits);
}

// Positive finite x to the nearest pattern, ties to the even one; infinity counts as the next step.
std::uint16_t nearest_by_search(double x, int exponent_bits, int mantissa_bits) {
  const std::uint16_t infinity =
      static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  auto value = [&](int bits) {
    if (bits < infinity)
      return value_of(static_cast<std::uint16_t>(bits), exponent_bits, mantissa_bits);
    return std::ldexp(1.0, 1 << (exponent_bits - 1));
  };
  int low = 0, high = infinity;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (value(middle) <= x ? low : high) = middle;
  }
  if (x >= value(high)) return static_cast<std::uint16_t>(high);
  const double down = x - value(low), up = value(high) - x;  // both exact: x has few more bits
  if (down < up || (down == up && low % 2 == 0)) return static_cast<std::uint16_t>(low);
  return static_cast<std::uint16_t>(high);
}

TEST(FloatFormats, EveryPatternDecodesAndComesBack) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const double b = value_of(bits, 8, 7), h = value_of(bits, 5, 10);
    if (std::isnan(b)) {
      EXPECT_TRUE(std::isnan(f32_of(Bf16{bits})));
      EXPECT_EQ(bf16_of(f32_of(Bf16{bits})).bits, bits | 0x0040) << i;  // quiet, payload kept
      EXPECT_EQ(bf16_of(f64_of(Bf16{bits})).bits, bits | 0x0040) << i;
    } else {
      EXPECT_EQ(f32_of(Bf16{bits}), b);
      EXPECT_EQ(std::signbit(f32_of(Bf16{bits})), std::signbit(b));
      EXPECT_EQ(bf16_of(f32_of(Bf16{bits})).bits, bits);
      EXPECT_EQ(bf16_of(b).bits, bits);
    }
    if (std::isnan(h)) {
      EXPECT_TRUE(std::isnan(f32_of(F16{bits})));
      EXPECT_EQ(f16_of(f32_of(F16{bits})).bits, bits | 0x0200) << i;
      EXPECT_EQ(f16_of(f64_of(F16{bits})).bits, bits | 0x0200) << i;
    } else {
      EXPECT_EQ(f32_of(F16{bits}), h);
      EXPECT_EQ(std::signbit(f32_of(F16{bits})), std::signbit(h));
      EXPECT_EQ(f16_of(f32_of(F16{bits})).bits, bits);
      EXPECT_EQ(f16_of(h).bits, bits);
    }
    EXPECT_EQ(is_finite(Bf16{bits}), std::isfinite(b));
    EXPECT_EQ(is_finite(F16{bits}), std::isfinite(h));
  }
}

template <class Format, int kExponent, int kMantissa>
void check_midpoints() {
  const int infinity = ((1 << kExponent) - 1) << kMantissa;
  for (int i = 0; i < infinity; ++i) {
    const auto low = static_cast<std::uint16_t>(i), high = static_cast<std::uint16_t>(i + 1);
    const double a = value_of(low, kExponent, kMantissa);
    const double b = high == infinity ? std::ldexp(1.0, 1 << (kExponent - 1))
                                      : value_of(high, kExponent, kMantissa);
    const double middle = 0.5 * (a + b);
    const auto even = i % 2 == 0 ? low : high;
    for (double sign : {1.0, -1.0}) {
      const std::uint16_t s = sign < 0 ? 0x8000 : 0;
      const auto f = static_cast<float>(middle);
      ASSERT_EQ(static_cast<double>(f), middle);
      ASSERT_EQ(round_to<Format>(sign * middle).bits, s | even) << i;
      ASSERT_EQ(round_to<Format>(static_cast<float>(sign * f)).bits, s | even) << i;
      // One float or one double away from the tie the answer is the nearer one, not the even one.
      ASSERT_EQ(round_to<Format>(sign * std::nextafter(middle, 0.0)).bits, s | low) << i;
      ASSERT_EQ(round_to<Format>(sign * std::nextafter(middle, 1e300)).bits, s | high) << i;
      ASSERT_EQ(round_to<Format>(static_cast<float>(sign) * std::nextafterf(f, 0.0f)).bits,
                s | low);
      ASSERT_EQ(round_to<Format>(static_cast<float>(sign) * std::nextafterf(f, INFINITY)).bits,
                s | high);
    }
  }
}

TEST(FloatFormats, EveryMidpointOfBf16GoesToEven) { check_midpoints<Bf16, 8, 7>(); }
TEST(FloatFormats, EveryMidpointOfF16GoesToEven) { check_midpoints<F16, 5, 10>(); }

TEST(FloatFormats, RandomValuesEqualTheSearch) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200000; ++i) {
    const double x = std::ldexp(1.0 + static_cast<double>(random() >> 12) * 0x1p-52,
                                static_cast<int>(random() % 300) - 150);
    const auto f = static_cast<float>(x);
    ASSERT_EQ(f16_of(x).bits, nearest_by_search(x, 5, 10)) << x;
    ASSERT_EQ(bf16_of(x).bits, nearest_by_search(x, 8, 7)) << x;
    if (std::isinf(f)) continue;
    ASSERT_EQ(f16_of(f).bits, nearest_by_search(f, 5, 10)) << f;
    ASSERT_EQ(bf16_of(f).bits, nearest_by_search(f, 8, 7)) << f;
  }
}

TEST(FloatFormats, AllExtremes) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(f16_of(65519.99).bits, 0x7bff);
  EXPECT_EQ(f16_of(65520.0).bits, 0x7c00);
  EXPECT_EQ(f16_of(65520.0f).bits, 0x7c00);
  EXPECT_EQ(f16_of(1e300).bits, 0x7c00);
  EXPECT_EQ(f16_of(-inf).bits, 0xfc00);
  EXPECT_EQ(bf16_of(-inf).bits, 0xff80);
  EXPECT_EQ(bf16_of(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bf16_of(1e300).bits, 0x7f80);
  EXPECT_EQ(f16_of(0x1p-25).bits, 0);  // a tie with zero, which is even
  EXPECT_EQ(f16_of(std::nextafter(0x1p-25, 1.0)).bits, 1);
  EXPECT_EQ(f16_of(-0.0).bits, 0x8000);
  EXPECT_EQ(f16_of(5e-324).bits, 0);
  EXPECT_EQ(bf16_of(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(bf16_of(-0.0f).bits, 0x8000);
  // A signalling NaN whose payload lies in the bits cut off must not become an infinity.
  const float snan = std::bit_cast<float>(std::uint32_t{0xff800001u});
  EXPECT_EQ(bf16_of(snan).bits, 0xffc0);
  EXPECT_EQ(f16_of(snan).bits, 0xfe00);
  // Twice rounded (through f32) this would give 1.0: the tie that f32 makes of it goes to even.
  const double above_tie = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(f16_of(static_cast<float>(above_tie)).bits, 0x3c00);
  EXPECT_EQ(f16_of(above_tie).bits, 0x3c01);
  EXPECT_EQ(f32_of(F16{0x7bff}), kF16Max);
  EXPECT_EQ(f32_of(F16{0x0400}), kF16SmallestNormal);
  EXPECT_EQ(f32_of(F16{0x0001}), kF16SmallestSubnormal);
  EXPECT_EQ(f32_of(Bf16{0x7f7f}), kBf16Max);
}

static_assert(bf16_of(1.0f).bits == 0x3f80 && f16_of(1.0).bits == 0x3c00);
static_assert(f32_of(F16{1}) == kF16SmallestSubnormal);

}  // namespace
}  // namespace aloft::scalar
