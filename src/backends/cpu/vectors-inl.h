// Per-target vector loads and stores of float types: include from a file that Highway compiles
// once a target (foreach_target.h), after highway.h. Everything computes in f32 lanes.
#if defined(ALOFT_CPU_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_VECTORS_INL
#undef ALOFT_CPU_VECTORS_INL
#else
#define ALOFT_CPU_VECTORS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "scalar/float_formats.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using FloatV = hn::Vec<Floats>;

// Lanes(d) elements from p, no alignment needed.
HWY_INLINE FloatV load(Floats d, const float* p) { return hn::LoadU(d, p); }
HWY_INLINE FloatV load(Floats d, const scalar::Bf16* p) {
  const hn::Rebind<std::uint16_t, Floats> d16;
  const hn::RebindToUnsigned<Floats> d32;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}
HWY_INLINE FloatV load(Floats d, const scalar::F16* p) {
  const hn::Rebind<hwy::float16_t, Floats> d16;
  const hn::Rebind<std::uint16_t, Floats> u16;
  const auto bits = hn::LoadU(u16, reinterpret_cast<const std::uint16_t*>(p));
  return hn::PromoteTo(d, hn::BitCast(d16, bits));
}

HWY_INLINE void store(Floats d, FloatV v, float* p) { hn::StoreU(v, d, p); }
// Round to nearest, ties to even; a NaN stays a quiet NaN with its sign and leading payload.
HWY_INLINE void store([[maybe_unused]] Floats d, FloatV v, scalar::Bf16* p) {
  const hn::RebindToUnsigned<Floats> d32;
  const hn::Rebind<std::uint16_t, Floats> d16;
  const auto u = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(d32, 1u));
  const auto rounded = hn::Add(u, hn::Add(odd, hn::Set(d32, 0x7fffu)));
  const auto quiet = hn::Or(u, hn::Set(d32, 0x00400000u));
  const auto is_nan = hn::RebindMask(d32, hn::IsNaN(v));
  const auto bits = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
  hn::StoreU(hn::TruncateTo(d16, bits), d16, reinterpret_cast<std::uint16_t*>(p));
}
HWY_INLINE void store([[maybe_unused]] Floats d, FloatV v, scalar::F16* p) {
  const hn::Rebind<hwy::float16_t, Floats> d16;
  const hn::Rebind<std::uint16_t, Floats> u16;
  const auto half = hn::DemoteTo(d16, v);
  hn::StoreU(hn::BitCast(u16, half), u16, reinterpret_cast<std::uint16_t*>(p));
}

// A whole vector from the n < Lanes(d) elements at p, `fill` behind them.
template <class T>
HWY_INLINE FloatV load_n(Floats d, const T* p, std::int64_t n, float fill = 0) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  for (std::size_t i = 0; i < hn::Lanes(d); ++i)
    lanes[i] = static_cast<std::int64_t>(i) < n ? scalar::f32_of(p[i]) : fill;
  return hn::Load(d, lanes);
}
template <class T>
HWY_INLINE void store_n(Floats d, FloatV v, T* p, std::int64_t n) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  for (std::int64_t i = 0; i < n; ++i) p[i] = scalar::round_to<T>(lanes[i]);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
