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

// The sum of squares of a run of floats, vector by vector: element i goes to lane i % kSumLanes,
// however wide the vectors are.
#if HWY_TARGET == HWY_SCALAR
class SquareSum {
 public:
  static constexpr std::int64_t kLanes = 1, kVectors = kSumLanes;
  // Vector number `v` of kSumLanes elements.
  HWY_INLINE void add(FloatV x, std::int64_t v) {
    const double value = hn::GetLane(x);
    all_[v] += value * value;
  }
  double total() { return sum_lanes(all_); }

 private:
  double all_[kSumLanes] = {};
};
#else
class SquareSum {
 public:
  static constexpr std::int64_t kLanes = HWY_MAX_BYTES / sizeof(float);
  static constexpr std::int64_t kVectors = kSumLanes / kLanes;
  static_assert(kVectors >= 1 && kSumLanes % kLanes == 0);

  HWY_INLINE SquareSum() {
    // Unrolled throughout: else the compiler would keep the sums in memory.
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v) low_[v] = high_[v] = hn::Zero(D64());
  }
  // Vector number `v` of kSumLanes elements.
  HWY_INLINE void add(FloatV x, std::int64_t v) {
    const hn::Half<Floats> half;
    const Doubles a = hn::PromoteTo(D64(), hn::LowerHalf(half, x));
    const Doubles b = hn::PromoteTo(D64(), hn::UpperHalf(half, x));
    low_[v] = hn::MulAdd(a, a, low_[v]);
    high_[v] = hn::MulAdd(b, b, high_[v]);
  }
  HWY_INLINE double total() {
    HWY_ALIGN double all[kSumLanes];
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v) {
      hn::Store(low_[v], D64(), all + v * kLanes);
      hn::Store(high_[v], D64(), all + v * kLanes + kLanes / 2);
    }
    return sum_lanes(all);
  }

 private:
  using D64 = hn::Repartition<double, Floats>;
  using Doubles = hn::Vec<D64>;
  Doubles low_[kVectors], high_[kVectors];
};
#endif

template <class T>
double sum_of_squares(const T* p, std::int64_t n) {
  const Floats d;
  constexpr std::int64_t kLanes = SquareSum::kLanes;
  SquareSum sum;
  std::int64_t i = 0;
  // One stream alone does not keep the hardware's prefetchers far enough ahead. Into the second
  // cache: so many lines on the way would push the nearer ones out of the first.
  constexpr std::int64_t kAhead = 12288 / sizeof(T);
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (std::int64_t line = 0; line < kSumLanes; line += 64 / sizeof(T))
      __builtin_prefetch(p + i + kAhead + line, 0, 2);
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < SquareSum::kVectors; ++v) sum.add(load(d, p + i + v * kLanes), v);
  }
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < SquareSum::kVectors; ++v, i += kLanes)
    if (i < n) sum.add(load_n(d, p + i, n - i), v);
  return sum.total();
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
