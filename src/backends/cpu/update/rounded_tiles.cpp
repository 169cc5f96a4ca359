#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/update/rounded_tiles.cpp"
#include <hwy/foreach_target.h>
// clang-format off: foreach_target.h comes before highway.h.
#include <hwy/highway.h>
// clang-format on
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/update/rounded_tiles.h"
#include "backends/cpu/vectors/pairs-inl.h"
#include "scalar/stochastic_rounding.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

using scalar::BlockForm;
using Unsigned = hn::RebindToUnsigned<Floats>;
using WordV = hn::Vec<Unsigned>;

// The slot's 16 bits of each word: the upper or the lower ones.
template <bool kUpper>
HWY_INLINE WordV bits_at(const std::uint32_t* words) {
  const Unsigned d;
  const WordV w = hn::LoadU(d, words);
  return kUpper ? hn::ShiftRight<16>(w) : hn::And(w, hn::Set(d, 0xffffu));
}

template <bool kUpper>
HWY_INLINE WordV rounded(FloatV x, const std::uint32_t* words) {
  return hn::ShiftRight<16>(hn::Add(hn::BitCast(Unsigned(), x), bits_at<kUpper>(words)));
}

template <bool kUpper>
HWY_INLINE void round_vector(FloatV x, const std::uint32_t* words, scalar::Bf16* to) {
  const Unsigned d32;
  const hn::Rebind<std::uint16_t, Floats> d16;
  const WordV quiet = hn::Or(hn::ShiftRight<16>(hn::BitCast(d32, x)), hn::Set(d32, 0x40u));
  const WordV out =
      hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(x)), quiet, rounded<kUpper>(x, words));
  hn::StoreU(hn::TruncateTo(d16, out), d16, reinterpret_cast<std::uint16_t*>(to));
}

template <bool kUpper>
void round_by(const float* tile, const std::uint32_t* words, scalar::Bf16* to, std::int64_t n) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2
  for (; i + 16 <= n; i += 16) {
    const FloatV a = hn::LoadU(d, tile + i), b = hn::LoadU(d, tile + i + 8);
    if (HWY_UNLIKELY(is_any_nan(a, b))) {
      round_vector<kUpper>(a, words + i, to + i);
      round_vector<kUpper>(b, words + i + 8, to + i + 8);
      continue;
    }
    const __m256i bits =
        lower_halves(rounded<kUpper>(a, words + i).raw, rounded<kUpper>(b, words + i + 8).raw);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), bits);
  }
#endif
  for (; i + lanes <= n; i += lanes)
    round_vector<kUpper>(hn::LoadU(d, tile + i), words + i, to + i);
  for (; i < n; ++i)
    to[i] = scalar::bf16_at_random(tile[i], scalar::rounding_bits_of(words[i], kUpper ? 1 : 0));
}

void round_all(const float* tile, const std::uint32_t* words, int slot, scalar::Bf16* to,
               std::int64_t n) {
  if (slot % 2 == 0)
    round_by<false>(tile, words, to, n);
  else
    round_by<true>(tile, words, to, n);
}

// Of [0, n); NaN where one is.
template <bool kSigned>
HWY_INLINE float largest_size(const float* tile, std::int64_t n) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // As many as hide each other's latency.
  FloatV most[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  hn::Mask<Floats> nan[4];
#pragma GCC unroll 4
  for (auto& any : nan) any = hn::Ne(most[0], most[0]);  // no lane
  const auto meet = [&](FloatV x, int k) HWY_ATTR {
    nan[k] = hn::Or(nan[k], hn::IsNaN(x));
    most[k] = hn::Max(most[k], kSigned ? hn::Abs(x) : x);
  };
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) meet(hn::LoadU(d, tile + i + k * lanes), k);
  }
  for (; i + lanes <= n; i += lanes) meet(hn::LoadU(d, tile + i), 0);
  if (i < n) meet(load_n(d, tile + i, n - i), 0);
  const auto any_nan = hn::Or(hn::Or(nan[0], nan[1]), hn::Or(nan[2], nan[3]));
  if (!hn::AllFalse(d, any_nan)) return std::numeric_limits<float>::quiet_NaN();
  const FloatV all = hn::Max(hn::Max(most[0], most[1]), hn::Max(most[2], most[3]));
  return hn::GetLane(hn::MaxOfLanes(d, all));
}

// The codes of sizes below the least normal one, which are even steps, and of 0.
template <bool kSigned>
WordV small_codes(FloatV size, FloatV a, WordV bits) {
  constexpr BlockForm kForm{kSigned};
  const Floats d;
  const Unsigned d32;
  const hn::RebindToSigned<Floats> i32;
  const FloatV random = hn::ConvertTo(d, hn::BitCast(i32, bits));
  const FloatV share = hn::Mul(hn::Add(random, hn::Set(d, 0.5f)), hn::Set(d, 0x1p-16f));
  const FloatV steps = hn::Add(hn::Mul(a, hn::Set(d, kForm.subnormal_codes())), share);
  const auto is_small = hn::Lt(a, hn::Set(d, kForm.least_normal()));
  WordV code = hn::BitCast(d32, hn::ConvertTo(i32, hn::IfThenElseZero(is_small, steps)));
  if (!kSigned) code = hn::Max(code, hn::Set(d32, 1u));
  return hn::IfThenElseZero(hn::RebindMask(d32, hn::Gt(size, hn::Zero(d))), code);
}

// The codes of a block with this scale, by the upper or the lower 16 bits of each word.
template <bool kSigned, bool kUpper>
void write_block(const float* tile, const std::uint32_t* words, float scale, std::uint8_t* codes,
                 std::int64_t n) {
  constexpr BlockForm kForm{kSigned};
  const Floats d;
  const Unsigned d32;
  const hn::Rebind<std::uint8_t, Floats> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const FloatV least = hn::Set(d, kForm.least_normal());
  // Half of the last bit that counts, less what a normal size has more than its code.
  const WordV half = hn::Set(d32, 8u - (kForm.offset() << 20));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    FloatV x = hn::LoadU(d, tile + i);
    const FloatV size = kSigned ? hn::Abs(x) : hn::Max(x, hn::Zero(d));
    const FloatV a = hn::Min(hn::Div(size, hn::Set(d, scale)), hn::Set(d, scalar::kBlockTop));
    const WordV word = hn::LoadU(d32, words + i);
    // The bits, 4 places up. The largest size is a code's own: nothing carries beyond that code.
    const WordV up =
        hn::And(kUpper ? hn::ShiftRight<12>(word) : hn::ShiftLeft<4>(word), hn::Set(d32, 0xffff0u));
    WordV code = hn::ShiftRight<20>(hn::Add(hn::Add(hn::BitCast(d32, a), half), up));
    const auto is_small = hn::Lt(a, least);
    if (HWY_UNLIKELY(!hn::AllFalse(d, is_small))) {
      code = hn::IfThenElse(hn::RebindMask(d32, is_small),
                            small_codes<kSigned>(size, a, hn::ShiftRight<4>(up)), code);
      x = hn::Add(x, hn::Zero(d));  // -0 has no sign
    }
    if (kSigned) {
      const WordV sign = hn::ShiftRight<24>(hn::BitCast(d32, x));
      code = hn::OrAnd(code, sign, hn::Set(d32, 0x80u));
    }
    hn::StoreU(hn::TruncateTo(d8, code), d8, codes + i);
  }
  for (; i < n; ++i)
    codes[i] = scalar::block_code(tile[i], scale,
                                  scalar::rounding_bits_of(words[i], kUpper ? 1 : 0), kForm);
}

template <bool kSigned>
void write_all(const float* tile, const std::uint32_t* words, int slot, std::uint8_t* codes,
               float* scales, std::int64_t n) {
  const auto size_at = [&](std::int64_t begin) { return std::min(n - begin, scalar::kBlock); };
  for (std::int64_t begin = 0; begin < n; begin += scalar::kBlock)
    scales[begin / scalar::kBlock] =
        scalar::block_scale(largest_size<kSigned>(tile + begin, size_at(begin)));
  for (std::int64_t begin = 0; begin < n; begin += scalar::kBlock) {
    const float scale = scales[begin / scalar::kBlock];
    std::uint8_t* to = codes + begin;
    if (!(scale > 0))  // all 0, or NaN
      std::fill_n(to, size_at(begin), std::uint8_t{0});
    else if (slot % 2 == 0)
      write_block<kSigned, false>(tile + begin, words + begin, scale, to, size_at(begin));
    else
      write_block<kSigned, true>(tile + begin, words + begin, scale, to, size_at(begin));
  }
}

void write_signed(const float* tile, const std::uint32_t* words, int slot, std::uint8_t* codes,
                  float* scales, std::int64_t n) {
  write_all<true>(tile, words, slot, codes, scales, n);
}
void write_not_negative(const float* tile, const std::uint32_t* words, int slot,
                        std::uint8_t* codes, float* scales, std::int64_t n) {
  write_all<false>(tile, words, slot, codes, scales, n);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(round_all);
HWY_EXPORT(write_signed);
HWY_EXPORT(write_not_negative);

void round_tile_at_random(const float* tile, const std::uint32_t* words, int slot, scalar::Bf16* to,
                          std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(round_all)(tile, words, slot, to, n);
}

void write_blocks(const float* tile, const std::uint32_t* words, int slot, scalar::BlockForm form,
                  const scalar::Blocks& blocks, std::int64_t n) {
  if (form.is_signed)
    HWY_DYNAMIC_DISPATCH(write_signed)(tile, words, slot, blocks.codes, blocks.scales, n);
  else
    HWY_DYNAMIC_DISPATCH(write_not_negative)(tile, words, slot, blocks.codes, blocks.scales, n);
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
