#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tiles.cpp"
#include <hwy/foreach_target.h>
// clang-format off: foreach_target.h comes before highway.h.
#include <hwy/highway.h>
// clang-format on
#include <cstring>

#include "backends/cpu/tiles.h"
#include "backends/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

template <class From, class To>
void convert(const From* src, To* dst, std::int64_t n) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const FloatV a = load(d, src + i), b = load(d, src + i + lanes);
    store(d, a, dst + i);
    store(d, b, dst + i + lanes);
  }
  for (; i + lanes <= n; i += lanes) store(d, load(d, src + i), dst + i);
  for (; i < n; ++i) dst[i] = scalar::round_to<To>(scalar::f32_of(src[i]));
}

void widen_bf16(const scalar::Bf16* src, float* dst, std::int64_t n) { convert(src, dst, n); }
void widen_f16(const scalar::F16* src, float* dst, std::int64_t n) { convert(src, dst, n); }
void narrow_bf16(const float* src, scalar::Bf16* dst, std::int64_t n) { convert(src, dst, n); }
void narrow_f16(const float* src, scalar::F16* dst, std::int64_t n) { convert(src, dst, n); }

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(widen_bf16);
HWY_EXPORT(widen_f16);
HWY_EXPORT(narrow_bf16);
HWY_EXPORT(narrow_f16);

void widen(DType from, const void* src, float* dst, std::int64_t n) {
  if (from == DType::BF16)
    HWY_DYNAMIC_DISPATCH(widen_bf16)(static_cast<const scalar::Bf16*>(src), dst, n);
  else if (from == DType::F16)
    HWY_DYNAMIC_DISPATCH(widen_f16)(static_cast<const scalar::F16*>(src), dst, n);
  else
    std::memcpy(dst, src, n * sizeof(float));
}

void narrow(const float* src, DType to, void* dst, std::int64_t n) {
  if (to == DType::BF16)
    HWY_DYNAMIC_DISPATCH(narrow_bf16)(src, static_cast<scalar::Bf16*>(dst), n);
  else if (to == DType::F16)
    HWY_DYNAMIC_DISPATCH(narrow_f16)(src, static_cast<scalar::F16*>(dst), n);
  else
    std::memcpy(dst, src, n * sizeof(float));
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
