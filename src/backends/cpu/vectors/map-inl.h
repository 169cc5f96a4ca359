// Loops over tiles: a function of vectors applied to all elements, the last few through a padded
// vector. Include from a file that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_MAP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_MAP_INL
#undef ALOFT_CPU_MAP_INL
#else
#define ALOFT_CPU_MAP_INL
#endif

#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// out[i] = f(x[i]); out may be x.
template <class T, class F>
HWY_INLINE void map(const T* x, T* out, std::int64_t n, const F& f) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(d, f(load(d, x + i)), out + i);
  if (i < n) store_n(d, f(load_n(d, x + i, n - i)), out + i, n - i);
}

// out[i] = f(x[i], y[i]); out may be either.
template <class T, class F>
HWY_INLINE void map(const T* x, const T* y, T* out, std::int64_t n, const F& f) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(d, f(load(d, x + i), load(d, y + i)), out + i);
  if (i < n) {
    const FloatV a = load_n(d, x + i, n - i), b = load_n(d, y + i, n - i);
    store_n(d, f(a, b), out + i, n - i);
  }
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
