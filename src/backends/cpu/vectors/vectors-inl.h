// Per-target vector loads and stores of float types: include from a file that Highway compiles
// once a target (foreach_target.h), after highway.h. Everything computes in f32 lanes.
#if defined(ALOFT_CPU_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_VECTORS_INL
#undef ALOFT_CPU_VECTORS_INL
#else
#define ALOFT_CPU_VECTORS_INL
#endif

#include <hwy/cache_control.h>
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
#if HWY_TARGET <= HWY_AVX3
// One permutation of 16-bit lanes brings the upper halves of 32-bit lanes together, and back.
alignas(64) constexpr std::uint16_t kUpperHalves[32] = {1,  3,  5,  7,  9,  11, 13, 15,
                                                        17, 19, 21, 23, 25, 27, 29, 31};
alignas(64) constexpr std::uint16_t kToUpperHalves[32] = {0, 0,  0, 1,  0, 2,  0, 3,  0, 4, 0,
                                                          5, 0,  6, 0,  7, 0,  8, 0,  9, 0, 10,
                                                          0, 11, 0, 12, 0, 13, 0, 14, 0, 15};

HWY_INLINE FloatV load(Floats, const scalar::Bf16* p) {
  const __m512i to = _mm512_load_si512(kToUpperHalves);
  const __m512i bits =
      _mm512_zextsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return FloatV{_mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaau, to, bits))};
}
#else
HWY_INLINE FloatV load(Floats d, const scalar::Bf16* p) {
  const hn::Rebind<std::uint16_t, Floats> d16;
  const hn::RebindToUnsigned<Floats> d32;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}
#endif
HWY_INLINE FloatV load(Floats d, const scalar::F16* p) {
  const hn::Rebind<hwy::float16_t, Floats> d16;
  const hn::Rebind<std::uint16_t, Floats> u16;
  const auto bits = hn::LoadU(u16, reinterpret_cast<const std::uint16_t*>(p));
  return hn::PromoteTo(d, hn::BitCast(d16, bits));
}

HWY_INLINE void store(Floats d, FloatV v, float* p) { hn::StoreU(v, d, p); }
// Round to nearest, ties to even; a NaN stays a quiet NaN with its sign and leading payload.
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE void store(Floats, FloatV v, scalar::Bf16* p) {
  const __m512i u = _mm512_castps_si512(v.raw);
  const __mmask16 is_odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(v.raw, v.raw, _CMP_UNORD_Q);
  __m512i bits = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
  bits = _mm512_mask_add_epi32(bits, is_odd, bits, _mm512_set1_epi32(1));
  bits = _mm512_mask_or_epi32(bits, is_nan, u, _mm512_set1_epi32(0x400000));
  const __m512i packed = _mm512_permutexvar_epi16(_mm512_load_si512(kUpperHalves), bits);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(packed));
}
#else
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
#endif
HWY_INLINE void store([[maybe_unused]] Floats d, FloatV v, scalar::F16* p) {
  const hn::Rebind<hwy::float16_t, Floats> d16;
  const hn::Rebind<std::uint16_t, Floats> u16;
  const auto half = hn::DemoteTo(d16, v);
  hn::StoreU(hn::BitCast(u16, half), u16, reinterpret_cast<std::uint16_t*>(p));
}

// As store(), to memory that is aligned as the vector is, and past the caches.
template <class T>
HWY_INLINE void stream(Floats d, FloatV x, T* p) {
  const hn::Rebind<std::uint16_t, Floats> d16;
  if constexpr (sizeof(T) == 4) {
    hn::Stream(x, d, p);
  } else {
    HWY_ALIGN std::uint16_t rounded[HWY_MAX_BYTES / sizeof(float)];
    store(d, x, reinterpret_cast<T*>(rounded));
    hn::Stream(hn::Load(d16, rounded), d16, reinterpret_cast<std::uint16_t*>(p));
  }
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
