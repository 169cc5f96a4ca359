#include "backends/cpu/conv/pool_pairs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/pool_pairs.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

// `v` beats `top`: larger, or the first NaN.
HWY_INLINE M beats(V v, V top) {
  return hn::And(hn::Or(hn::Gt(v, top), hn::IsNaN(v)), hn::Eq(top, top));
}

void max_of(const float* top, const float* bottom, float* y, std::int64_t n) {
  const D d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < n; i += w) {
    V a, b, c, e;
    hn::LoadInterleaved2(d, top + 2 * i, a, b);
    hn::LoadInterleaved2(d, bottom + 2 * i, c, e);
    a = hn::IfThenElse(beats(b, a), b, a);
    a = hn::IfThenElse(beats(c, a), c, a);
    hn::StoreU(hn::IfThenElse(beats(e, a), e, a), d, y + i);
  }
}

void max_grad_of(const float* dy, float* top, float* bottom, std::int64_t n) {
  const D d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < n; i += w) {
    V a, b, c, e;
    hn::LoadInterleaved2(d, top + 2 * i, a, b);
    hn::LoadInterleaved2(d, bottom + 2 * i, c, e);
    const M second = beats(b, a);
    a = hn::IfThenElse(second, b, a);
    const M third = beats(c, a);
    a = hn::IfThenElse(third, c, a);
    const M fourth = beats(e, a);
    const V g = hn::LoadU(d, dy + i);
    const V not_fourth = hn::IfThenZeroElse(fourth, g);
    const V not_third = hn::IfThenZeroElse(third, not_fourth);
    hn::StoreInterleaved2(hn::IfThenZeroElse(second, not_third),
                          hn::IfThenElseZero(second, not_third), d, top + 2 * i);
    hn::StoreInterleaved2(hn::IfThenElseZero(third, not_fourth), hn::IfThenElseZero(fourth, g), d,
                          bottom + 2 * i);
  }
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(max_of);
HWY_EXPORT(max_grad_of);

void max_of_pairs(const float* top, const float* bottom, float* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(max_of)(top, bottom, y, n);
}
void max_of_pairs_grad(const float* dy, float* top, float* bottom, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(max_grad_of)(dy, top, bottom, n);
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
