#include "backends/cpu/rows/channel_sweeps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/rows/channel_sweeps.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "backends/cpu/rows/sums_in_double.h"
#include "backends/cpu/vectors/sweeps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

template <class T>
double sum(const void* p, std::int64_t n) {
  const T* x = static_cast<const T*>(p);
  const double total = sum_over(n, [&](auto at) HWY_ATTR { return at(x); });
  return HWY_LIKELY(std::isfinite(total)) ? total : sum_in_double(x, n);
}

template <class T>
double distances(const void* p, float mean, std::int64_t n) {
  const T* x = static_cast<const T*>(p);
  const FloatV m = hn::Set(Floats(), mean);
  return sum_over(n, [&](auto at) HWY_ATTR { return at.keep(hn::Sub(at(x), m)); });
}

template <class T>
double squares(const void* p, float mean, std::int64_t n) {
  const T* x = static_cast<const T*>(p);
  const FloatV m = hn::Set(Floats(), mean);
  const double total = sum_over(n, [&](auto at) HWY_ATTR {
    const FloatV c = at.keep(hn::Sub(at(x), m));
    return hn::Mul(c, c);
  });
  return HWY_LIKELY(std::isfinite(total)) ? total
                                          : squares_in_double(x, n, static_cast<double>(mean));
}

template <class T>
ChannelSums products(const void* q, const void* p, float mean, std::int64_t n) {
  const T *dy = static_cast<const T*>(q), *x = static_cast<const T*>(p);
  const FloatV m = hn::Set(Floats(), mean);
  const Sums s = sums_over(n, [&](auto at) HWY_ATTR {
    const FloatV g = at(dy);
    return SumTerms{g, at.keep(hn::Mul(g, hn::Sub(at(x), m)))};
  });
  return {s.first, s.second};
}

template <class T>
void affine(const void* p, float mean, float a, float b, void* result, std::int64_t n) {
  const T* x = static_cast<const T*>(p);
  T* y = static_cast<T*>(result);
  const Floats d;
  const FloatV m = hn::Set(d, mean), by = hn::Set(d, a), plus = hn::Set(d, b);
  for_vectors(n, [&](auto at) HWY_ATTR { at.put(hn::MulAdd(hn::Sub(at(x), m), by, plus), y); });
}

template <class T>
void combine(const void* q, const void* p, float mean, float to_dy, float to_x, float rest,
             void* result, std::int64_t n) {
  const T *dy = static_cast<const T*>(q), *x = static_cast<const T*>(p);
  T* dx = static_cast<T*>(result);
  const Floats d;
  const FloatV m = hn::Set(d, mean), a = hn::Set(d, to_dy), b = hn::Set(d, to_x),
               c = hn::Set(d, rest);
  for_vectors(n, [&](auto at) HWY_ATTR {
    at.put(hn::MulAdd(at(dy), a, hn::MulAdd(hn::Sub(at(x), m), b, c)), dx);
  });
}

template <class T>
ChannelSweeps sweeps_for() {
  return {sum<T>, distances<T>, squares<T>, products<T>, affine<T>, combine<T>};
}

ChannelSweeps make_channel_sweeps(DType t) {
  if (t == DType::F32) return sweeps_for<float>();
  return t == DType::BF16 ? sweeps_for<scalar::Bf16>() : sweeps_for<scalar::F16>();
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(make_channel_sweeps);

ChannelSweeps channel_sweeps(DType type) { return HWY_DYNAMIC_DISPATCH(make_channel_sweeps)(type); }

}  // namespace aloft::cpu
#endif  // HWY_ONCE
