// The loop of an optimizer's kernel over one run of elements: types are resolved once a run, then
// each vector of values goes through the optimizer's step once. Include from a file that Highway
// compiles once a target, after highway.h.
#if defined(ALOFT_CPU_UPDATE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_UPDATE_INL
#undef ALOFT_CPU_UPDATE_INL
#else
#define ALOFT_CPU_UPDATE_INL
#endif

#include <hwy/cache_control.h>

#include "backends/cpu/update_sweep.h"
#include "backends/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// step(value, gradient, m0, m1) changes value, m0 and m1; the gradient is already multiplied.
template <int kMoments, class V, class G, class L, class Step>
HWY_INLINE void update_loop(const UpdateRun& r, float multiplier, const Step& step) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* gradient = static_cast<const G*>(r.gradient);
  const auto* from = static_cast<const V*>(r.from);
  auto* to = static_cast<V*>(r.to);
  auto* low = static_cast<L*>(r.low);
  const FloatV factor = hn::Set(d, multiplier);
  constexpr std::int64_t kAhead = 512;  // elements
  std::int64_t i = 0;
  for (; i + lanes <= r.n; i += lanes) {
    // Streams end at pages, and the hardware's prefetchers with them.
    hwy::Prefetch(gradient + i + kAhead);
    hwy::Prefetch(from + i + kAhead);
    if constexpr (kMoments > 0) hwy::Prefetch(r.moment[0] + i + kAhead);
    if constexpr (kMoments > 1) hwy::Prefetch(r.moment[1] + i + kAhead);
    FloatV x = load(d, from + i), m0 = hn::Zero(d), m1 = hn::Zero(d);
    if constexpr (kMoments > 0) m0 = load(d, r.moment[0] + i);
    if constexpr (kMoments > 1) m1 = load(d, r.moment[1] + i);
    step(x, hn::Mul(load(d, gradient + i), factor), m0, m1);
    store(d, x, to + i);
    if (low) store(d, x, low + i);
    if constexpr (kMoments > 0) store(d, m0, r.new_moment[0] + i);
    if constexpr (kMoments > 1) store(d, m1, r.new_moment[1] + i);
  }
  if (const std::int64_t n = r.n - i; n > 0) {
    FloatV x = load_n(d, from + i, n), m0 = hn::Zero(d), m1 = hn::Zero(d);
    if constexpr (kMoments > 0) m0 = load_n(d, r.moment[0] + i, n);
    if constexpr (kMoments > 1) m1 = load_n(d, r.moment[1] + i, n);
    step(x, hn::Mul(load_n(d, gradient + i, n), factor), m0, m1);
    store_n(d, x, to + i, n);
    if (low) store_n(d, x, low + i, n);
    if constexpr (kMoments > 0) store_n(d, m0, r.new_moment[0] + i, n);
    if constexpr (kMoments > 1) store_n(d, m1, r.new_moment[1] + i, n);
  }
}

template <int kMoments, class V, class L, class Step>
void update_for_gradient(const UpdateRun& r, float multiplier, const Step& step) {
  if (r.gradient_type == DType::F32) return update_loop<kMoments, V, float, L>(r, multiplier, step);
  if (r.gradient_type == DType::BF16)
    return update_loop<kMoments, V, scalar::Bf16, L>(r, multiplier, step);
  update_loop<kMoments, V, scalar::F16, L>(r, multiplier, step);
}

template <int kMoments, class Step>
void update_run(const UpdateRun& r, float multiplier, const Step& step) {
  using scalar::Bf16;
  using scalar::F16;
  if (!r.low) {
    if (r.value_type == DType::F32)
      return update_for_gradient<kMoments, float, float>(r, multiplier, step);
    if (r.value_type == DType::BF16)
      return update_for_gradient<kMoments, Bf16, float>(r, multiplier, step);
    return update_for_gradient<kMoments, F16, float>(r, multiplier, step);
  }
  if (r.low_type == DType::F32)
    return update_for_gradient<kMoments, float, float>(r, multiplier, step);
  if (r.low_type == DType::BF16)
    return update_for_gradient<kMoments, float, Bf16>(r, multiplier, step);
  update_for_gradient<kMoments, float, F16>(r, multiplier, step);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
