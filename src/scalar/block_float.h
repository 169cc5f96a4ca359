// Floats in 8 bits each and a common scale for every 256 of them: what "8bit" states of optimizers
// are kept in (block-wise as in Dettmers et al. 2022, "8-bit optimizers via block-wise
// quantization"; the codes are small floats, not a table). Rounded at random, as
// stochastic_rounding.h says why.
//
//   signed         sign, 4 bits of exponent, 3 of mantissa: values 2^-17 to 1.875 of the scale
//   not negative   5 bits of exponent, 3 of mantissa: 2^-33 to 1.875 of it; what is not 0 does not
//                  become 0, because others divide by its root
//
// A block's scale is its largest size over 1.875. A block with a NaN is all NaN. Sizes above 2^127
// become 2^127.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace aloft::scalar {

inline constexpr std::int64_t kBlock = 256;  // elements

constexpr std::int64_t block_count(std::int64_t n) { return (n + kBlock - 1) / kBlock; }
// Bytes of n elements: the scales of the blocks as f32, then a code each.
constexpr std::int64_t block_bytes(std::int64_t n) { return 4 * block_count(n) + n; }
// The n of so many bytes.
constexpr std::int64_t elements_of_blocks(std::int64_t bytes) {
  return bytes - 4 * ((bytes + kBlock + 3) / (kBlock + 4));
}

// Blocks in memory.
template <class Scale, class Code>
struct BlocksIn {
  Scale* scales = nullptr;
  Code* codes = nullptr;
  // In memory that holds those of `n` elements.
  BlocksIn(Code* memory, std::int64_t n)
      : scales(reinterpret_cast<Scale*>(memory)), codes(memory + 4 * block_count(n)) {}
  // From element `begin` on, where a block begins.
  BlocksIn from(std::int64_t begin) const {
    BlocksIn b = *this;
    b.scales += begin / kBlock, b.codes += begin;
    return b;
  }
};
using Blocks = BlocksIn<float, std::uint8_t>;
using ConstBlocks = BlocksIn<const float, const std::uint8_t>;

// The two forms of a code.
struct BlockForm {
  bool is_signed;
  constexpr std::uint32_t most() const { return is_signed ? 127 : 255; }  // code of 1.875
  // Exponent of the smallest normal size: code 8.
  constexpr int least_exponent() const { return is_signed ? -14 : -30; }
  constexpr float least_normal() const { return power_of_two(least_exponent()); }
  constexpr float subnormal_codes() const { return power_of_two(3 - least_exponent()); }
  // What the upper bits of a normal size have more than its code.
  constexpr std::uint32_t offset() const {
    return (static_cast<std::uint32_t>(126 + least_exponent()) << 3);
  }
  static constexpr float power_of_two(int e) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(127 + e) << 23);
  }
};

inline constexpr float kBlockTop = 1.875f, kMostInBlock = 0x1p127f, kLeastScale = 0x1p-126f;

// Of a block whose largest size is `largest`; NaN where that is.
constexpr float block_scale(float largest) {
  if (!(largest > 0)) return largest;
  return std::max(std::min(largest, kMostInBlock) / kBlockTop, kLeastScale);
}

// `x` of a block with this scale, which is not 0 unless x is.
constexpr std::uint8_t block_code(float x, float scale, std::uint16_t bits, BlockForm form) {
  const float size = form.is_signed ? std::abs(x) : std::max(x, 0.0f);
  if (!(size > 0)) return 0;
  const float a = std::min(size / scale, kBlockTop);
  std::uint32_t code;
  if (a < form.least_normal()) {
    const float share = (static_cast<float>(bits) + 0.5f) * 0x1p-16f;
    code = static_cast<std::uint32_t>(a * form.subnormal_codes() + share);
    if (!form.is_signed) code = std::max(code, std::uint32_t{1});
  } else {
    const std::uint32_t u = std::bit_cast<std::uint32_t>(a) + (std::uint32_t{bits} << 4 | 8u);
    code = std::min((u >> 20) - form.offset(), form.most());
  }
  const bool is_negative = form.is_signed && x < 0;
  return static_cast<std::uint8_t>(code | (is_negative ? 0x80u : 0u));
}

constexpr float block_value(std::uint8_t code, float scale, BlockForm form) {
  const std::uint32_t size = code & form.most();
  const float a = size < 8 ? static_cast<float>(size) / form.subnormal_codes()
                           : std::bit_cast<float>((size + form.offset()) << 20);
  return (form.is_signed && code > 0x7f ? -a : a) * scale;
}

}  // namespace aloft::scalar
