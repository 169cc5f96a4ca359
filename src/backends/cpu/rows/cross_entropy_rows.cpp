#include "backends/cpu/rows/cross_entropy_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/rows/cross_entropy_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/vectors/exp-inl.h"
#include "backends/cpu/vectors/map-inl.h"
#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// Elements whose maximum is found, then whose exponentials are summed, while in the first cache.
constexpr std::int64_t kBlock = 2048;
constexpr float kLeast = -std::numeric_limits<float>::infinity();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr float kLog2e = 1.44269504f;

// NaNs are left out: they show in the sum of the exponentials.
template <class T>
float max_of(const T* x, std::int64_t n) {
  const Floats d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  FloatV a = hn::Set(d, kLeast), b = a, c = a, e = a;
  std::int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    a = hn::Max(load(d, x + i), a);
    b = hn::Max(load(d, x + i + w), b);
    c = hn::Max(load(d, x + i + 2 * w), c);
    e = hn::Max(load(d, x + i + 3 * w), e);
  }
  for (; i + w <= n; i += w) a = hn::Max(load(d, x + i), a);
  if (i < n) a = hn::Max(load_n(d, x + i, n - i, kLeast), a);
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(a, b), hn::Max(c, e))));
}

// Sum of f(x).
template <class T, class F>
HWY_INLINE double sum_over(const T* x, std::int64_t n, const F& f) {
  const Floats d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  FloatV a = hn::Zero(d), b = a, c = a, e = a;
  std::int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    a = hn::Add(a, f(load(d, x + i)));
    b = hn::Add(b, f(load(d, x + i + w)));
    c = hn::Add(c, f(load(d, x + i + 2 * w)));
    e = hn::Add(e, f(load(d, x + i + 3 * w)));
  }
  for (; i + w <= n; i += w) a = hn::Add(a, f(load(d, x + i)));
  if (i < n) b = hn::Add(b, f(load_n(d, x + i, n - i, kLeast)));
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e)))));
}

// e^(x - m) where m is the largest of a row: exact for m itself, and an error that grows with the
// distance, as here, does not show in sums, where those far below weigh nothing, nor in low types.
HWY_INLINE FloatV exp_from(FloatV x, FloatV m) {
  return exp2_below(hn::Mul(hn::Sub(x, m), hn::Set(Floats(), kLog2e)));
}

template <class T>
double exp_sum(const T* x, std::int64_t n, float m) {
  const FloatV top = hn::Set(Floats(), m);
  return sum_over(x, n, [&](FloatV v) HWY_ATTR { return exp_from(v, top); });
}

template <class T>
double mean_above(const void* row, std::int64_t n, float from) {
  const T* x = static_cast<const T*>(row);
  const FloatV base = hn::Set(Floats(), from);
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
    const std::int64_t k = std::min(kBlock, n - i), whole = k / lanes * lanes;
    sum += sum_over(x + i, whole, [&](FloatV v) HWY_ATTR { return hn::Sub(v, base); });
    for (std::int64_t j = i + whole; j < i + k; ++j)
      sum += static_cast<double>(scalar::f32_of(x[j])) - static_cast<double>(from);
  }
  return sum / static_cast<double>(n);
}

template <class T>
bool has_nan(const T* x, std::int64_t n) {
  return std::any_of(x, x + n, [](T v) { return std::isnan(scalar::f32_of(v)); });
}

// A sum of a block's exponentials beyond this is taken again, from a larger maximum: below, no
// logit is more than 9 above m, which costs nothing in accuracy.
constexpr double kLargestSum = 4 * kBlock;

// Any number near a row's largest logits serves as m: after the first block, one is looked through
// for its maximum only where its sum asks for it.
template <class T>
LogSumExp log_sum_exp(const void* row, std::int64_t n) {
  const T* x = static_cast<const T*>(row);
  float m = kLeast;
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t k = std::min(kBlock, n - i);
    double here = m == kLeast ? kInf : exp_sum(x + i, k, m);
    if (!(here <= kLargestSum)) {
      const float top = max_of(x + i, k);
      if (top == kLeast) {  // nothing but -inf, or NaN
        if (has_nan(x + i, k)) sum = kNaN;
        continue;
      }
      if (!(top <= m)) {
        sum *= std::exp(static_cast<double>(m) - static_cast<double>(top));
        m = top;
      }
      here = exp_sum(x + i, k, m);
    }
    sum += here;
  }
  if (m == kLeast) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const double more = std::log(sum);
  const auto high = static_cast<float>(static_cast<double>(m) + more);
  // The difference of two f32 this close is exact, and `more` survives it where m is huge.
  return {high, static_cast<float>(static_cast<double>(m) - static_cast<double>(high) + more)};
}

// The exponentials stay in `e` until their sum is known.
template <class T>
void softmax(const void* row, std::int64_t n, float* e, void* result) {
  const T* x = static_cast<const T*>(row);
  T* y = static_cast<T*>(result);
  const Floats d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  const FloatV top = hn::Set(d, max_of(x, n));
  FloatV a = hn::Zero(d), b = a;
  std::int64_t i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    const FloatV p = exp_from(load(d, x + i), top), q = exp_from(load(d, x + i + w), top);
    hn::StoreU(p, d, e + i);
    hn::StoreU(q, d, e + i + w);
    a = hn::Add(a, p);
    b = hn::Add(b, q);
  }
  for (; i < n; i += w) {
    const FloatV v = i + w <= n ? load(d, x + i) : load_n(d, x + i, n - i, kLeast);
    const FloatV p = exp_from(v, top);
    hn::StoreU(p, d, e + i);
    a = hn::Add(a, p);
  }
  const FloatV by = hn::Set(d, 1 / hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b))));
  for (i = 0; i + w <= n; i += w) store(d, hn::Mul(hn::LoadU(d, e + i), by), y + i);
  if (i < n) store_n(d, hn::Mul(hn::LoadU(d, e + i), by), y + i, n - i);
}

template <class T, class G>
void gradient(const void* row, std::int64_t n, LogSumExp sum, float floor, float scale,
              void* result) {
  const T* x = static_cast<const T*>(row);
  G* dx = static_cast<G*>(result);
  const Floats d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  // (p - floor) * scale as p * scale - floor * scale would round p - floor elsewhere: keep the
  // order.
  const FloatV base = hn::Set(d, floor), scaled = hn::Set(d, scale);
  // A result in f32 keeps what it can; one in a low type takes the cheaper exponential.
  constexpr bool kInPowers = !std::is_same_v<G, float>;
  const FloatV high = hn::Set(d, sum.high), by = hn::Set(d, kLog2e);
  const FloatV low = hn::Set(d, kInPowers ? sum.low * kLog2e : sum.low);
  const auto one = [&](FloatV v) HWY_ATTR {
    const FloatV x = hn::Sub(v, high);
    const FloatV p = kInPowers ? exp2_below(hn::MulSub(x, by, low)) : exp_below(hn::Sub(x, low));
    return hn::Mul(hn::Sub(p, base), scaled);
  };
  std::int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    const FloatV a = one(load(d, x + i)), b = one(load(d, x + i + w));
    const FloatV c = one(load(d, x + i + 2 * w)), e = one(load(d, x + i + 3 * w));
    store(d, a, dx + i);
    store(d, b, dx + i + w);
    store(d, c, dx + i + 2 * w);
    store(d, e, dx + i + 3 * w);
  }
  for (; i + w <= n; i += w) store(d, one(load(d, x + i)), dx + i);
  if (i < n) store_n(d, one(load_n(d, x + i, n - i)), dx + i, n - i);
}

template <class T>
void log_softmax(const void* row, std::int64_t n, LogSumExp sum, bool streams, void* result) {
  const Floats d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  const T* x = static_cast<const T*>(row);
  T* y = static_cast<T*>(result);
  const FloatV a = hn::Set(d, sum.high), b = hn::Set(d, sum.low);
  std::int64_t i = 0;
  if (streams)
    for (; i + w <= n; i += w) stream(d, hn::Sub(hn::Sub(load(d, x + i), a), b), y + i);
  map(x + i, y + i, n - i, [&](FloatV v) HWY_ATTR { return hn::Sub(hn::Sub(v, a), b); });
  if (streams) hwy::FlushStream();
}

template <class T, class G>
CrossEntropyRows rows_of() {
  return {log_sum_exp<T>, mean_above<T>, gradient<T, G>, softmax<T>, log_softmax<T>};
}

template <class T>
CrossEntropyRows rows_for(DType to) {
  if (to == DType::F32) return rows_of<T, float>();
  if (to == DType::BF16) return rows_of<T, scalar::Bf16>();
  return rows_of<T, scalar::F16>();
}

CrossEntropyRows make_cross_entropy_rows(DType from, DType to) {
  if (from == DType::F32) return rows_for<float>(to);
  if (from == DType::BF16) return rows_for<scalar::Bf16>(to);
  return rows_for<scalar::F16>(to);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(make_cross_entropy_rows);

CrossEntropyRows cross_entropy_rows(DType logits, DType gradient) {
  return HWY_DYNAMIC_DISPATCH(make_cross_entropy_rows)(logits, gradient);
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
