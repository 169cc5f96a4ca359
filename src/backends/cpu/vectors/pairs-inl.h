// Two vectors at a time on their way to a narrower type: what both take is done once. Include from
// a file that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_PAIRS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_PAIRS_INL
#undef ALOFT_CPU_PAIRS_INL
#else
#define ALOFT_CPU_PAIRS_INL
#endif

#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// Two vectors, the second one's elements behind the first one's.
template <class T>
HWY_INLINE void store_two(Floats d, FloatV a, FloatV b, T* p) {
  store(d, a, p);
  store(d, b, p + hn::Lanes(d));
}
#if HWY_TARGET == HWY_AVX2
// The lower halves of 32-bit lanes, of which the upper ones are 0.
HWY_INLINE __m256i lower_halves(__m256i a, __m256i b) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
}
HWY_INLINE __m256i to_nearest_bf16(FloatV v) {
  const __m256i u = _mm256_castps_si256(v.raw);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  return _mm256_srli_epi32(_mm256_add_epi32(u, half), 16);
}
HWY_INLINE bool is_any_nan(FloatV a, FloatV b) {
  return _mm256_movemask_ps(_mm256_cmp_ps(a.raw, b.raw, _CMP_UNORD_Q)) != 0;
}
// There are no instructions for bf16, but both go through the same ones, once.
HWY_INLINE void store_two(Floats d, FloatV a, FloatV b, scalar::Bf16* p) {
  if (HWY_UNLIKELY(is_any_nan(a, b))) {
    store(d, a, p);
    store(d, b, p + 8);
    return;
  }
  const __m256i bits = lower_halves(to_nearest_bf16(a), to_nearest_bf16(b));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bits);
}
#endif

// As store_two(), to memory that is aligned as two vectors of it are, and past the caches.
template <class T>
HWY_INLINE void stream_two(Floats d, FloatV a, FloatV b, T* p) {
  stream(d, a, p);
  stream(d, b, p + hn::Lanes(d));
}
#if HWY_TARGET == HWY_AVX2
HWY_INLINE void stream_two(Floats d, FloatV a, FloatV b, scalar::Bf16* p) {
  HWY_ALIGN scalar::Bf16 rounded[16];
  store_two(d, a, b, rounded);
  const __m256i bits = _mm256_load_si256(reinterpret_cast<const __m256i*>(rounded));
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), bits);
}
#endif

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
