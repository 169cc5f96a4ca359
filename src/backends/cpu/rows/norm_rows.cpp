#include "backends/cpu/rows/norm_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/rows/norm_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "backends/cpu/rows/far_means.h"
#include "backends/cpu/rows/sums_in_double.h"
#include "backends/cpu/vectors/sweeps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

template <class T>
HWY_NOINLINE double mean_of_distances(const T* x, std::int64_t n, FloatV mean) {
  return sum_over(n, [&](auto at) HWY_ATTR { return at.keep(hn::Sub(at(x), mean)); }) /
         static_cast<double>(n);
}

// Mean and 1 / deviation of a row far from 0, from a mean that is near the true one.
struct FarStatistics {
  SplitMean mean;
  float rstd = 0;
};
template <class T>
HWY_NOINLINE FarStatistics far_statistics(const T* x, std::int64_t n, float near, double eps) {
  const Floats d;
  const double mean = static_cast<double>(near) + mean_of_distances(x, n, hn::Set(d, near));
  FarStatistics s{SplitMean(mean)};
  const FloatV m = hn::Set(d, s.mean.near), rest = hn::Set(d, static_cast<float>(s.mean.rest));
  double squares = sum_over(n, [&](auto at) HWY_ATTR {
    const FloatV c = at.keep(hn::Sub(hn::Sub(at(x), m), rest));
    return hn::Mul(c, c);
  });
  if (!std::isfinite(squares)) squares = squares_in_double(x, n, mean);
  s.rstd = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
  return s;
}

// y = (x - mean - rest) rstd scale + shift.
template <class T, bool kCentred, bool kFarRow>
void normalise(const T* x, const NormForward& row, const NormStatistics& s, double rest_of_mean,
               std::int64_t n) {
  T* y = static_cast<T*>(row.y);
  const float *scale = row.scale, *shift = row.shift;
  const Floats d;
  const FloatV mean = hn::Set(d, s.mean), rstd = hn::Set(d, s.rstd);
  const FloatV rest = hn::Set(d, static_cast<float>(rest_of_mean));
  for_vectors(n, [&](auto at) HWY_ATTR {
    FloatV v = at(x);
    if constexpr (kCentred) v = hn::Sub(v, mean);
    if constexpr (kFarRow) v = hn::Sub(v, rest);
    v = hn::Mul(v, rstd);
    if (scale) v = hn::Mul(v, at(scale));
    if (shift) v = hn::Add(v, at(shift));
    at.put(v, y);
  });
}

template <class T, bool kCentred, bool kSum>
NormStatistics forward(const NormForward& row, std::int64_t n) {
  const T* x = static_cast<const T*>(row.x);
  const T* addend = static_cast<const T*>(row.addend);
  T* sum = static_cast<T*>(row.sum);
  const Floats d;
  NormStatistics s;
  const auto count = static_cast<double>(n);
  // The first sweep meets x; where the row is a sum it writes that, and reads it back rounded.
  const auto first = [&](auto at) HWY_ATTR {
    if constexpr (!kSum) return at(x);
    at.put(hn::Add(at(x), at(addend)), sum);
    return at(static_cast<const T*>(sum));
  };
  const T* normed = kSum ? sum : x;
  if constexpr (kCentred) {
    double total = sum_over(n, first);
    if (HWY_UNLIKELY(!std::isfinite(total))) total = sum_in_double(normed, n);
    s.mean = static_cast<float>(total / count);
  }
  const FloatV mean = hn::Set(d, s.mean);
  double squares = sum_over(n, [&](auto at) HWY_ATTR {
    const FloatV c = kCentred ? at.keep(hn::Sub(at(normed), mean)) : first(at);
    return hn::Mul(c, c);
  });
  if (HWY_UNLIKELY(!std::isfinite(squares))) squares = squares_in_double(normed, n, s.mean);
  s.rstd = static_cast<float>(1 / std::sqrt(squares / count + row.eps));
  if constexpr (kCentred)
    if (HWY_UNLIKELY(is_far(s.mean, s.rstd))) {
      const FarStatistics far = far_statistics(normed, n, s.mean, row.eps);
      s = {far.mean.near, far.rstd};
      normalise<T, true, true>(normed, row, s, far.mean.rest, n);
      return s;
    }
  normalise<T, kCentred, false>(normed, row, s, 0, n);
  return s;
}

// With xhat = (x - mean) rstd and d = dy scale:
//   dx = rstd (d - mean(d) - xhat mean(d xhat)),  dscale += dy xhat,  dshift += dy.
// dx is rounded to its type before the residual is added to it.
template <class T, bool kCentred, bool kFarRow>
void backward_with(const NormBackward& row, double rest_of_mean, std::int64_t n) {
  const T* dy = static_cast<const T*>(row.dy);
  const T* x = static_cast<const T*>(row.x);
  const T* residual = static_cast<const T*>(row.residual);
  T* dx = static_cast<T*>(row.dx);
  const float* scale = row.scale;
  const Floats d;
  const FloatV mean = hn::Set(d, row.statistics.mean), rstd = hn::Set(d, row.statistics.rstd);
  const FloatV rest = hn::Set(d, static_cast<float>(rest_of_mean));
  const auto xhat_of = [&](FloatV v) HWY_ATTR {
    if constexpr (kCentred) v = hn::Sub(v, mean);
    if constexpr (kFarRow) v = hn::Sub(v, rest);
    return hn::Mul(v, rstd);
  };
  const Sums sums = sums_over(n, [&](auto at) HWY_ATTR {
    const FloatV g = scale ? hn::Mul(at(dy), at(scale)) : at(dy);
    return SumTerms{g, at.keep(hn::Mul(g, xhat_of(at(x))))};
  });
  const auto count = static_cast<double>(n);
  const FloatV a = hn::Set(d, kCentred ? static_cast<float>(sums.first / count) : 0.0f);
  const FloatV b = hn::Set(d, static_cast<float>(sums.second / count));
  for_vectors(n, [&](auto at) HWY_ATTR {
    const FloatV g = at(dy), xhat = xhat_of(at(x));
    FloatV v = scale ? hn::Mul(g, at(scale)) : g;
    if constexpr (kCentred) v = hn::Sub(v, a);
    v = hn::Mul(hn::NegMulAdd(xhat, b, v), rstd);
    if (row.dscale) at.put(hn::MulAdd(g, xhat, at(row.dscale)), row.dscale);
    if (row.dshift) at.put(hn::Add(g, at(row.dshift)), row.dshift);
    if (!residual) return at.put(v, dx);
    const FloatV r = at(residual);  // may lie where dx goes
    at.put(v, dx);
    at.put(hn::Add(r, at(static_cast<const T*>(dx))), dx);
  });
}

template <class T, bool kCentred>
void backward(const NormBackward& row, std::int64_t n) {
  if constexpr (kCentred)
    if (const NormStatistics& s = row.statistics; HWY_UNLIKELY(is_far(s.mean, s.rstd))) {
      const FloatV mean = hn::Set(Floats(), s.mean);
      const double rest = mean_of_distances(static_cast<const T*>(row.x), n, mean);
      return backward_with<T, true, true>(row, rest_of(s.mean, rest), n);
    }
  backward_with<T, kCentred, false>(row, 0, n);
}

template <class T, bool kCentred>
NormRows rows_of() {
  return {forward<T, kCentred, false>, forward<T, kCentred, true>, backward<T, kCentred>};
}
template <bool kCentred>
NormRows rows_for(DType type) {
  if (type == DType::F32) return rows_of<float, kCentred>();
  return type == DType::BF16 ? rows_of<scalar::Bf16, kCentred>() : rows_of<scalar::F16, kCentred>();
}

NormRows make_norm_rows(DType type, bool centred) {
  return centred ? rows_for<true>(type) : rows_for<false>(type);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(make_norm_rows);

NormRows norm_rows(DType type, bool centred) {
  return HWY_DYNAMIC_DISPATCH(make_norm_rows)(type, centred);
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
