#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/update/low_tiles.cpp"
#include <hwy/foreach_target.h>
// clang-format off: foreach_target.h comes before highway.h.
#include <hwy/highway.h>
// clang-format on

#include "backends/cpu/update/low_tiles.h"
#include "backends/cpu/vectors/tiles.h"
#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

using scalar::Bf16;
using scalar::ConstRests;
using scalar::Rests;

// Midpoints, the only values whose bit counts, are one in 65,536: their bits are read only there.
void join_all(const Bf16* near, const ConstRests& rests, float* tile, std::int64_t n) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> d32;
  const hn::Rebind<std::uint16_t, Floats> u16;
  const hn::Rebind<std::int16_t, Floats> i16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto one_by_one = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) tile[k] = scalar::joined(rests, near[k], k);
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto upper = hn::LoadU(u16, reinterpret_cast<const std::uint16_t*>(near + i));
    const auto rest = hn::BitCast(i16, hn::LoadU(u16, rests.words + i));
    const auto wide = hn::BitCast(d32, hn::PromoteTo(hn::RebindToSigned<Floats>(), rest));
    if (HWY_UNLIKELY(!hn::AllFalse(d32, hn::Eq(wide, hn::Set(d32, 0xffff8000u))))) {
      one_by_one(i, i + lanes);
      continue;
    }
    const auto u = hn::Add(hn::ShiftLeft<16>(hn::PromoteTo(d32, upper)), wide);
    hn::StoreU(hn::BitCast(d, u), d, tile + i);
  }
  one_by_one(i, n);
}

void split_all(const float* tile, Bf16* near, const Rests& rests, std::int64_t n) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> d32;
  const hn::Rebind<std::uint16_t, Floats> u16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const FloatV x = hn::LoadU(d, tile + i);
    store(d, x, near + i);
    const auto u = hn::BitCast(d32, x);
    const auto whole = hn::And(u, hn::Set(d32, 0xffffu));
    const auto rest = hn::IfThenZeroElse(hn::RebindMask(d32, hn::IsNaN(x)), whole);
    hn::StoreU(hn::TruncateTo(u16, rest), u16, rests.words + i);
    const auto is_tie = hn::Eq(rest, hn::Set(d32, std::uint32_t{scalar::kTieRest}));
    // Rounded down: the upper half was even.
    const auto is_even = hn::Eq(hn::And(u, hn::Set(d32, 0x10000u)), hn::Zero(d32));
    const auto below = hn::And(is_tie, is_even);
    if (lanes >= 8) {
      hn::StoreMaskBits(d32, below, rests.bits + i / 8);
      continue;
    }
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d32, below, bits);
    const auto all = static_cast<unsigned>((1u << lanes) - 1) << (i % 8);
    std::uint8_t& byte = rests.bits[i / 8];
    byte = static_cast<std::uint8_t>((byte & ~all) | (unsigned{bits[0]} << (i % 8) & all));
  }
  for (; i < n; ++i) near[i] = scalar::put_split(rests, i, tile[i]);
  if (n % 8 != 0) rests.bits[n / 8] &= static_cast<std::uint8_t>((1u << (n % 8)) - 1);
}

template <class L>
void stream_all(const float* tile, L* low, std::int64_t n) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) stream(d, hn::LoadU(d, tile + i), low + i);
  for (; i < n; ++i) low[i] = scalar::round_to<L>(tile[i]);
}
void stream_f32(const float* tile, float* low, std::int64_t n) { stream_all(tile, low, n); }
void stream_bf16(const float* tile, Bf16* low, std::int64_t n) { stream_all(tile, low, n); }
void stream_f16(const float* tile, scalar::F16* low, std::int64_t n) { stream_all(tile, low, n); }

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(join_all);
HWY_EXPORT(split_all);
HWY_EXPORT(stream_f32);
HWY_EXPORT(stream_bf16);
HWY_EXPORT(stream_f16);

void join_tile(const scalar::Bf16* near, const scalar::ConstRests& rests, float* tile,
               std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(join_all)(near, rests, tile, n);
}

void split_tile(const float* tile, scalar::Bf16* near, const scalar::Rests& rests, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(split_all)(tile, near, rests, n);
}

void stream_tile(const float* tile, DType to, void* dst, std::int64_t n) {
  if (reinterpret_cast<std::uintptr_t>(dst) % 64 != 0) return narrow(tile, to, dst, n);
  if (to == DType::F32)
    HWY_DYNAMIC_DISPATCH(stream_f32)(tile, static_cast<float*>(dst), n);
  else if (to == DType::BF16)
    HWY_DYNAMIC_DISPATCH(stream_bf16)(tile, static_cast<scalar::Bf16*>(dst), n);
  else
    HWY_DYNAMIC_DISPATCH(stream_f16)(tile, static_cast<scalar::F16*>(dst), n);
}

void flush_streams() { hwy::FlushStream(); }

}  // namespace aloft::cpu
#endif  // HWY_ONCE
