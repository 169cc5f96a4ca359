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
#include "backends/cpu/vectors/vectors-inl.h"
#include "scalar/stochastic_rounding.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

using scalar::BlockForm;
using Unsigned = hn::RebindToUnsigned<Floats>;
using WordV = hn::Vec<Unsigned>;

// The slot's 16 bits of each word.
HWY_INLINE WordV bits_at(const std::uint32_t* words, int slot) {
  const Unsigned d;
  const WordV w = hn::LoadU(d, words);
  return slot % 2 == 0 ? hn::And(w, hn::Set(d, 0xffffu)) : hn::ShiftRight<16>(w);
}

void round_all(const float* tile, const std::uint32_t* words, int slot, scalar::Bf16* to,
               std::int64_t n) {
  const Floats d;
  const Unsigned d32;
  const hn::Rebind<std::uint16_t, Floats> d16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const FloatV x = hn::LoadU(d, tile + i);
    const WordV u = hn::BitCast(d32, x);
    const WordV rounded = hn::ShiftRight<16>(hn::Add(u, bits_at(words + i, slot)));
    const WordV quiet = hn::Or(hn::ShiftRight<16>(u), hn::Set(d32, 0x40u));
    const WordV out = hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(x)), quiet, rounded);
    hn::StoreU(hn::TruncateTo(d16, out), d16, reinterpret_cast<std::uint16_t*>(to + i));
  }
  for (; i < n; ++i)
    to[i] = scalar::bf16_at_random(tile[i], scalar::rounding_bits_of(words[i], slot));
}

template <bool kSigned>
void read_all(const std::uint8_t* codes, const float* scales, float* tile, std::int64_t n) {
  constexpr BlockForm kForm{kSigned};
  const Floats d;
  const Unsigned d32;
  const hn::RebindToSigned<Floats> i32;
  const hn::Rebind<std::uint8_t, Floats> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const FloatV small = hn::Set(d, 1 / kForm.subnormal_codes());
  for (std::int64_t begin = 0; begin < n; begin += scalar::kBlock) {
    const float scale = scales[begin / scalar::kBlock];
    const std::int64_t end = std::min(n, begin + scalar::kBlock);
    std::int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      const WordV code = hn::PromoteTo(d32, hn::LoadU(d8, codes + i));
      const WordV size = hn::And(code, hn::Set(d32, kForm.most()));
      const FloatV subnormal = hn::Mul(hn::ConvertTo(d, hn::BitCast(i32, size)), small);
      const FloatV normal =
          hn::BitCast(d, hn::ShiftLeft<20>(hn::Add(size, hn::Set(d32, kForm.offset()))));
      FloatV a =
          hn::IfThenElse(hn::RebindMask(d, hn::Lt(size, hn::Set(d32, 8u))), subnormal, normal);
      if (kSigned) {
        const WordV sign = hn::ShiftLeft<24>(hn::And(code, hn::Set(d32, 0x80u)));
        a = hn::Or(a, hn::BitCast(d, sign));
      }
      hn::StoreU(hn::Mul(a, hn::Set(d, scale)), d, tile + i);
    }
    for (; i < end; ++i) tile[i] = scalar::block_value(codes[i], scale, kForm);
  }
}

// Of [0, n); NaN where one is.
template <bool kSigned>
HWY_INLINE float largest_size(const float* tile, std::int64_t n) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  FloatV most = hn::Zero(d);
  auto any_nan = hn::Ne(most, most);  // no lane
  std::int64_t i = 0;
  const auto meet = [&](FloatV x) HWY_ATTR {
    any_nan = hn::Or(any_nan, hn::IsNaN(x));
    most = hn::Max(most, kSigned ? hn::Abs(x) : x);
  };
  for (; i + lanes <= n; i += lanes) meet(hn::LoadU(d, tile + i));
  if (i < n) meet(load_n(d, tile + i, n - i));
  if (!hn::AllFalse(d, any_nan)) return std::numeric_limits<float>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

template <bool kSigned>
void write_all(const float* tile, const std::uint32_t* words, int slot, std::uint8_t* codes,
               float* scales, std::int64_t n) {
  constexpr BlockForm kForm{kSigned};
  const Floats d;
  const Unsigned d32;
  const hn::RebindToSigned<Floats> i32;
  const hn::Rebind<std::uint8_t, Floats> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t begin = 0; begin < n; begin += scalar::kBlock) {
    const std::int64_t end = std::min(n, begin + scalar::kBlock);
    const float scale = scalar::block_scale(largest_size<kSigned>(tile + begin, end - begin));
    scales[begin / scalar::kBlock] = scale;
    if (!(scale > 0)) {  // all 0, or NaN
      std::fill(codes + begin, codes + end, std::uint8_t{0});
      continue;
    }
    std::int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      const FloatV x = hn::LoadU(d, tile + i);
      const FloatV size = kSigned ? hn::Abs(x) : hn::Max(x, hn::Zero(d));
      const FloatV a = hn::Min(hn::Div(size, hn::Set(d, scale)), hn::Set(d, scalar::kBlockTop));
      const WordV bits = bits_at(words + i, slot);
      // Below the normal sizes codes are even steps.
      const FloatV random = hn::ConvertTo(d, hn::BitCast(i32, bits));
      const FloatV share = hn::Mul(hn::Add(random, hn::Set(d, 0.5f)), hn::Set(d, 0x1p-16f));
      const FloatV steps = hn::Add(hn::Mul(a, hn::Set(d, kForm.subnormal_codes())), share);
      const FloatV least = hn::Set(d, kForm.least_normal());
      const auto is_subnormal = hn::Lt(a, least);
      WordV subnormal =
          hn::BitCast(d32, hn::ConvertTo(i32, hn::IfThenElseZero(is_subnormal, steps)));
      if (!kSigned) subnormal = hn::Max(subnormal, hn::Set(d32, 1u));
      const WordV up = hn::Or(hn::ShiftLeft<4>(bits), hn::Set(d32, 8u));
      const WordV u = hn::Add(hn::BitCast(d32, a), up);
      const WordV normal = hn::Min(hn::Sub(hn::ShiftRight<20>(u), hn::Set(d32, kForm.offset())),
                                   hn::Set(d32, kForm.most()));
      WordV code = hn::IfThenElse(hn::RebindMask(d32, is_subnormal), subnormal, normal);
      if (kSigned) {
        const auto is_negative = hn::Lt(x, hn::Zero(d));
        code =
            hn::Or(code, hn::IfThenElseZero(hn::RebindMask(d32, is_negative), hn::Set(d32, 0x80u)));
      }
      code = hn::IfThenElseZero(hn::RebindMask(d32, hn::Gt(size, hn::Zero(d))), code);
      hn::StoreU(hn::TruncateTo(d8, code), d8, codes + i);
    }
    for (; i < end; ++i)
      codes[i] =
          scalar::block_code(tile[i], scale, scalar::rounding_bits_of(words[i], slot), kForm);
  }
}

void read_signed(const std::uint8_t* codes, const float* scales, float* tile, std::int64_t n) {
  read_all<true>(codes, scales, tile, n);
}
void read_not_negative(const std::uint8_t* codes, const float* scales, float* tile,
                       std::int64_t n) {
  read_all<false>(codes, scales, tile, n);
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
HWY_EXPORT(read_signed);
HWY_EXPORT(read_not_negative);
HWY_EXPORT(write_signed);
HWY_EXPORT(write_not_negative);

void round_tile_at_random(const float* tile, const std::uint32_t* words, int slot, scalar::Bf16* to,
                          std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(round_all)(tile, words, slot, to, n);
}

void read_blocks(const scalar::ConstBlocks& blocks, scalar::BlockForm form, float* tile,
                 std::int64_t n) {
  if (form.is_signed)
    HWY_DYNAMIC_DISPATCH(read_signed)(blocks.codes, blocks.scales, tile, n);
  else
    HWY_DYNAMIC_DISPATCH(read_not_negative)(blocks.codes, blocks.scales, tile, n);
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
