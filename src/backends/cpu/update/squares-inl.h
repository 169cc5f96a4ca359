// The sum of squares of a run of floats: exact squares in double (a float has 24 bits), summed into
// 32 lanes that are then added in a fixed order: the same bits on every target. Include from a file
// that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_SQUARES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_SQUARES_INL
#undef ALOFT_CPU_SQUARES_INL
#else
#define ALOFT_CPU_SQUARES_INL
#endif

#include <cstdint>

#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

constexpr std::int64_t kSumLanes = 32;

// Adds the lanes pairwise: 32 to 16 to 8 to 4 to 2 to 1.
HWY_INLINE double sum_lanes(double* all) {
  for (std::int64_t width = kSumLanes / 2; width > 0; width /= 2)
    for (std::int64_t l = 0; l < width; ++l) all[l] += all[l + width];
  return all[0];
}

#if HWY_TARGET == HWY_SCALAR
template <class T>
double sum_of_squares(const T* p, std::int64_t n) {
  double all[kSumLanes] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = scalar::f32_of(p[i]);
    all[i % kSumLanes] += x * x;
  }
  return sum_lanes(all);
}
#else
// Element i goes to lane i % kSumLanes, however wide the vectors are.
template <class T>
double sum_of_squares(const T* p, std::int64_t n) {
  const Floats d;
  const hn::Half<Floats> half;
  const hn::Repartition<double, Floats> d64;
  using Doubles = hn::Vec<decltype(d64)>;
  constexpr std::int64_t kLanes = HWY_MAX_BYTES / sizeof(float);
  constexpr std::int64_t kVectors = kSumLanes / kLanes;
  static_assert(kVectors >= 1 && kSumLanes % kLanes == 0);
  Doubles low[kVectors], high[kVectors];
  // Unrolled throughout: else the compiler would keep the sums in memory.
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) low[v] = high[v] = hn::Zero(d64);
  const auto add = [&](FloatV x, std::int64_t v) HWY_ATTR {
    const Doubles a = hn::PromoteTo(d64, hn::LowerHalf(half, x));
    const Doubles b = hn::PromoteTo(d64, hn::UpperHalf(half, x));
    low[v] = hn::MulAdd(a, a, low[v]);
    high[v] = hn::MulAdd(b, b, high[v]);
  };
  std::int64_t i = 0;
  // One stream alone does not keep the hardware's prefetchers far enough ahead. Into the second
  // cache: so many lines on the way would push the nearer ones out of the first.
  constexpr std::int64_t kAhead = 12288 / sizeof(T);
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (std::int64_t line = 0; line < kSumLanes; line += 64 / sizeof(T))
      __builtin_prefetch(p + i + kAhead + line, 0, 2);
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v) add(load(d, p + i + v * kLanes), v);
  }
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v, i += kLanes)
    if (i < n) add(load_n(d, p + i, n - i), v);
  HWY_ALIGN double all[kSumLanes];
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    hn::Store(low[v], d64, all + v * kLanes);
    hn::Store(high[v], d64, all + v * kLanes + kLanes / 2);
  }
  return sum_lanes(all);
}
#endif

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
