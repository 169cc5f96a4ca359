// Sweeps over a run of elements with a function of positions: f(at) reads the vector at the
// current position of any array by at(p), of any float type, and writes by at.put(v, p). The last,
// partial vector is padded with zeros. Include from a file that Highway compiles once a target,
// after highway.h.
#if defined(ALOFT_CPU_SWEEPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_SWEEPS_INL
#undef ALOFT_CPU_SWEEPS_INL
#else
#define ALOFT_CPU_SWEEPS_INL
#endif

#include <algorithm>

#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// A whole vector.
struct Whole {
  std::int64_t i;
  template <class T>
  HWY_INLINE FloatV operator()(const T* p) const {
    return load(Floats(), p + i);
  }
  template <class T>
  HWY_INLINE void put(FloatV v, T* p) const {
    store(Floats(), v, p + i);
  }
  // v, with zeros behind the end.
  HWY_INLINE FloatV keep(FloatV v) const { return v; }
};

// The last n < Lanes elements.
struct Partial {
  std::int64_t i, n;
  template <class T>
  HWY_INLINE FloatV operator()(const T* p) const {
    return load_n(Floats(), p + i, n);
  }
  template <class T>
  HWY_INLINE void put(FloatV v, T* p) const {
    store_n(Floats(), v, p + i, n);
  }
  HWY_INLINE FloatV keep(FloatV v) const {
    return hn::IfThenElseZero(hn::FirstN(Floats(), static_cast<std::size_t>(n)), v);
  }
};

template <class F>
HWY_INLINE void for_vectors(std::int64_t n, const F& f) {
  const auto w = static_cast<std::int64_t>(hn::Lanes(Floats()));
  std::int64_t i = 0;
  for (; i + w <= n; i += w) f(Whole{i});
  if (i < n) f(Partial{i, n - i});
}

HWY_INLINE double across(FloatV a) {
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(Floats(), a)));
}

// The sum of f's vectors: four independent sums in f32 lanes, one in double for every 2,048
// vectors' worth of elements.
constexpr std::int64_t kSumBlock = 32768;

template <class F>
HWY_INLINE double sum_over(std::int64_t n, const F& f) {
  const auto w = static_cast<std::int64_t>(hn::Lanes(Floats()));
  double total = 0;
  std::int64_t i = 0;
  do {
    const std::int64_t end = std::min(n, i + kSumBlock);
    FloatV a = hn::Zero(Floats()), b = a, c = a, e = a;
    for (; i + 4 * w <= end; i += 4 * w) {
      a = hn::Add(a, f(Whole{i}));
      b = hn::Add(b, f(Whole{i + w}));
      c = hn::Add(c, f(Whole{i + 2 * w}));
      e = hn::Add(e, f(Whole{i + 3 * w}));
    }
    for (; i + w <= end; i += w) a = hn::Add(a, f(Whole{i}));
    if (i < end) b = hn::Add(b, f(Partial{i, end - i}));
    total += across(hn::Add(hn::Add(a, b), hn::Add(c, e)));
    i = end;
  } while (i < n);
  return total;
}

// Two sums in one sweep.
struct Sums {
  double first = 0, second = 0;
};
struct SumTerms {
  FloatV first, second;
};

template <class F>
HWY_INLINE Sums sums_over(std::int64_t n, const F& f) {
  const auto w = static_cast<std::int64_t>(hn::Lanes(Floats()));
  Sums total;
  std::int64_t i = 0;
  do {
    const std::int64_t end = std::min(n, i + kSumBlock);
    FloatV a = hn::Zero(Floats()), b = a, c = a, e = a;
    for (; i + 2 * w <= end; i += 2 * w) {
      const SumTerms s = f(Whole{i}), t = f(Whole{i + w});
      a = hn::Add(a, s.first);
      b = hn::Add(b, s.second);
      c = hn::Add(c, t.first);
      e = hn::Add(e, t.second);
    }
    for (; i + w <= end; i += w) {
      const SumTerms s = f(Whole{i});
      a = hn::Add(a, s.first);
      b = hn::Add(b, s.second);
    }
    if (i < end) {
      const SumTerms s = f(Partial{i, end - i});
      c = hn::Add(c, s.first);
      e = hn::Add(e, s.second);
    }
    total.first += across(hn::Add(a, c));
    total.second += across(hn::Add(b, e));
    i = end;
  } while (i < n);
  return total;
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
