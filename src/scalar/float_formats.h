// Narrow float formats as bit patterns, and their conversions: bf16 (1-8-7) and f16 (IEEE binary16,
// 1-5-10). Every conversion to a narrower format rounds once, to nearest with ties to even, makes
// subnormals, overflows to infinity, and keeps a NaN a quiet NaN with its sign and leading payload.
// Nothing here depends on the processor's flush-to-zero or denormals-are-zero mode.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace aloft::scalar {

// A stored value; arithmetic happens in f32 or f64. Buffers of DType::BF16 and F16 hold these.
struct Bf16 {
  std::uint16_t bits;
  friend constexpr bool operator==(Bf16, Bf16) = default;  // of bits: +0 != -0, NaN == NaN
};
struct F16 {
  std::uint16_t bits;
  friend constexpr bool operator==(F16, F16) = default;  // of bits
};
static_assert(sizeof(Bf16) == 2 && sizeof(F16) == 2);

constexpr float f32_of(Bf16 x) {
  std::uint32_t u = std::uint32_t{x.bits} << 16;
  if ((u & 0x7fffffffu) > 0x7f800000u) u |= 0x00400000u;
  return std::bit_cast<float>(u);
}

constexpr float f32_of(F16 x) {
  const std::uint32_t sign = std::uint32_t{x.bits & 0x8000u} << 16;
  const std::uint32_t magnitude = x.bits & 0x7fffu;
  std::uint32_t u = (magnitude << 13) + (112u << 23);  // exponent bias 15 -> 127
  if (magnitude >= 0x7c00u) {
    u = (magnitude << 13) | 0x7f800000u;
    if (magnitude > 0x7c00u) u |= 0x00400000u;
  } else if (magnitude < 0x0400u) {
    // Read as 2^-14 * (1 + m / 1024), so that subtracting 2^-14 leaves m * 2^-24, exactly.
    u = std::bit_cast<std::uint32_t>(std::bit_cast<float>(u + (1u << 23)) -
                                     std::bit_cast<float>(113u << 23));
  }
  return std::bit_cast<float>(sign | u);
}

constexpr Bf16 bf16_of(float x) {
  std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>(u >> 16 | 0x0040u)};
  return {static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16)};
}

constexpr F16 f16_of(float x) {
  const std::uint32_t whole = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = whole >> 16 & 0x8000u;
  const std::uint32_t u = whole & 0x7fffffffu;
  std::uint32_t h;
  if (u > 0x7f800000u) {
    h = 0x7e00u | (u >> 13 & 0x03ffu);
  } else if (u >= 0x47800000u) {  // 65536 and more; 65520 up to it carry into infinity below
    h = 0x7c00u;
  } else if (u < 0x38800000u) {  // below 2^-14: the addition of 0.5 rounds at 2^-24
    h = std::bit_cast<std::uint32_t>(std::bit_cast<float>(u) + 0.5f) - 0x3f000000u;
  } else {
    h = (u - (112u << 23) + 0x0fffu + (u >> 13 & 1u)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | h)};
}

// A double to a 16-bit format with kExponent and kMantissa bits, rounded once: going through f32
// would round twice and be wrong next to halfway points.
template <int kExponent, int kMantissa>
constexpr std::uint16_t narrow_bits_of(double x) {
  static_assert(1 + kExponent + kMantissa == 16);
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  constexpr std::uint64_t kInfinity = ((std::uint64_t{1} << kExponent) - 1) << kMantissa;
  const std::uint64_t whole = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t sign = whole >> 48 & 0x8000u;
  const std::uint64_t mantissa = whole & ((std::uint64_t{1} << 52) - 1);
  const int field = static_cast<int>(whole >> 52 & 0x7ff);
  auto result = [&](std::uint64_t bits) { return static_cast<std::uint16_t>(sign | bits); };
  if (field == 0x7ff)
    return result(mantissa == 0 ? kInfinity
                                : kInfinity | std::uint64_t{1} << (kMantissa - 1) |
                                      mantissa >> (52 - kMantissa));
  const int exponent = field - 1023;
  if (exponent > kBias) return result(kInfinity);
  const int below = exponent < 1 - kBias ? 1 - kBias - exponent : 0;  // places under the normals
  const int shift = 52 - kMantissa + below;
  if (shift >= 54) return result(0);  // under half of the smallest subnormal; f64 subnormals too
  const std::uint64_t significand = mantissa | std::uint64_t{1} << 52;
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const std::uint64_t rounded = (significand + half - 1 + (significand >> shift & 1u)) >> shift;
  if (below > 0) return result(rounded);  // a carry makes the smallest normal
  return result((static_cast<std::uint64_t>(exponent + kBias - 1) << kMantissa) + rounded);
}

constexpr Bf16 bf16_of(double x) { return {narrow_bits_of<8, 7>(x)}; }
constexpr F16 f16_of(double x) { return {narrow_bits_of<5, 10>(x)}; }

// For loops written once over every float type.
constexpr float f32_of(float x) { return x; }
constexpr float f32_of(double x) { return static_cast<float>(x); }
constexpr double f64_of(float x) { return x; }
constexpr double f64_of(double x) { return x; }
constexpr double f64_of(Bf16 x) { return f32_of(x); }
constexpr double f64_of(F16 x) { return f32_of(x); }

// `x` (float or double) as To (float, double, Bf16, F16), rounded once.
template <class To, class From>
constexpr To round_to(From x) {
  static_assert(std::is_floating_point_v<From>);
  if constexpr (std::is_same_v<To, Bf16>)
    return bf16_of(x);
  else if constexpr (std::is_same_v<To, F16>)
    return f16_of(x);
  else
    return static_cast<To>(x);
}

constexpr bool is_finite(float x) {
  return (std::bit_cast<std::uint32_t>(x) & 0x7f800000u) != 0x7f800000u;
}
constexpr bool is_finite(double x) {
  return (std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff) != 0x7ff;
}
constexpr bool is_finite(Bf16 x) { return (x.bits & 0x7f80u) != 0x7f80u; }
constexpr bool is_finite(F16 x) { return (x.bits & 0x7c00u) != 0x7c00u; }

inline constexpr float kF16Max = 65504.0f;
inline constexpr float kF16SmallestNormal = 6.103515625e-05f;            // 2^-14
inline constexpr float kF16SmallestSubnormal = 5.9604644775390625e-08f;  // 2^-24
inline constexpr float kBf16Max = 3.3895313892515355e38f;

}  // namespace aloft::scalar
