#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/vectors/tiles.cpp"
#include <hwy/foreach_target.h>
// clang-format off: foreach_target.h comes before highway.h.
#include <hwy/highway.h>
// clang-format on
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/vectors/tiles.h"
#include "backends/cpu/vectors/vectors-inl.h"

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

// A vector goes through T in the first cache, two at a time so that one's way hides the other's.
template <class T>
void round_in_place(float* tile, std::int64_t n) {
  const Floats d;
  constexpr std::int64_t kMost = HWY_MAX_BYTES / sizeof(float);
  HWY_ALIGN T a[kMost], b[kMost];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    store(d, load(d, tile + i), a);
    store(d, load(d, tile + i + lanes), b);
    store(d, load(d, a), tile + i);
    store(d, load(d, b), tile + i + lanes);
  }
  for (; i < n; ++i) tile[i] = scalar::f32_of(scalar::round_to<T>(tile[i]));
}

void round_bf16(float* tile, std::int64_t n) { round_in_place<scalar::Bf16>(tile, n); }
void round_f16(float* tile, std::int64_t n) { round_in_place<scalar::F16>(tile, n); }
void widen_bf16(const scalar::Bf16* src, float* dst, std::int64_t n) { convert(src, dst, n); }
void widen_f16(const scalar::F16* src, float* dst, std::int64_t n) { convert(src, dst, n); }
void narrow_bf16(const float* src, scalar::Bf16* dst, std::int64_t n) { convert(src, dst, n); }
void narrow_f16(const float* src, scalar::F16* dst, std::int64_t n) { convert(src, dst, n); }

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(round_bf16);
HWY_EXPORT(round_f16);
HWY_EXPORT(widen_bf16);
HWY_EXPORT(widen_f16);
HWY_EXPORT(narrow_bf16);
HWY_EXPORT(narrow_f16);

void widen(DType from, const void* src, float* dst, std::int64_t n) {
  if (from == DType::BF16)
    HWY_DYNAMIC_DISPATCH(widen_bf16)(static_cast<const scalar::Bf16*>(src), dst, n);
  else if (from == DType::F16)
    HWY_DYNAMIC_DISPATCH(widen_f16)(static_cast<const scalar::F16*>(src), dst, n);
  else if (n > 0)  // of nothing there may be no address
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

void round_tile(DType to, float* tile, std::int64_t n) {
  if (to == DType::BF16)
    HWY_DYNAMIC_DISPATCH(round_bf16)(tile, n);
  else if (to == DType::F16)
    HWY_DYNAMIC_DISPATCH(round_f16)(tile, n);
}

namespace {

template <class T, class Wide>
void spread(const void* src, Wide* dst, std::int64_t n) {
  const T* p = static_cast<const T*>(src);
  for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<Wide>(p[i]);
}

template <class T, class Wide>
T saturate(Wide v) {
  using Limits = std::numeric_limits<T>;
  if (!(v == v)) return 0;
  if (v <= static_cast<Wide>(Limits::min())) return Limits::min();
  if (v >= static_cast<Wide>(Limits::max())) return Limits::max();
  return static_cast<T>(v);
}

template <class T, class Wide>
void gather_up(const Wide* src, void* dst, std::int64_t n) {
  T* p = static_cast<T*>(dst);
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, bool>)
      p[i] = src[i] != 0;
    else if constexpr (std::is_integral_v<T>)
      p[i] = saturate<T>(src[i]);
    else
      p[i] = scalar::round_to<T>(src[i]);
  }
}

template <class Wide>
const Wide* open_integers(DType t, const void* src, Wide* buffer, std::int64_t n) {
  switch (t) {
    case DType::I64:
      spread<std::int64_t>(src, buffer, n);
      break;
    case DType::I32:
      spread<std::int32_t>(src, buffer, n);
      break;
    case DType::I8:
      spread<std::int8_t>(src, buffer, n);
      break;
    default:
      spread<std::uint8_t>(src, buffer, n);
      break;
  }
  return buffer;
}

template <class Wide>
void close_integers(DType t, const Wide* tile, void* dst, std::int64_t n) {
  switch (t) {
    case DType::I64:
      return gather_up<std::int64_t>(tile, dst, n);
    case DType::I32:
      return gather_up<std::int32_t>(tile, dst, n);
    case DType::I8:
      return gather_up<std::int8_t>(tile, dst, n);
    case DType::U8:
      return gather_up<std::uint8_t>(tile, dst, n);
    default:
      return gather_up<bool>(tile, dst, n);
  }
}

}  // namespace

const float* open_f32(DType t, const void* src, float* buffer, std::int64_t n) {
  if (t == DType::F32) return static_cast<const float*>(src);
  if (is_low(t))
    widen(t, src, buffer, n);
  else if (t == DType::F64)
    spread<double>(src, buffer, n);
  else
    open_integers(t, src, buffer, n);
  return buffer;
}

void close_f32(DType t, const float* tile, void* dst, std::int64_t n) {
  if (tile == dst) return;
  if (has_tiles(t)) return narrow(tile, t, dst, n);
  if (t == DType::F64) return gather_up<double>(tile, dst, n);
  close_integers(t, tile, dst, n);
}

const double* open_f64(DType t, const void* src, double* buffer, std::int64_t n) {
  if (t == DType::F64) return static_cast<const double*>(src);
  if (!is_float(t)) return open_integers(t, src, buffer, n);
  if (t == DType::F32) {
    spread<float>(src, buffer, n);
    return buffer;
  }
  // Through f32, which holds both exactly, a stretch at a time.
  alignas(64) float wide[256];
  for (std::int64_t i = 0; i < n; i += 256) {
    const std::int64_t m = std::min<std::int64_t>(256, n - i);
    widen(t, at(src, i, t), wide, m);
    spread<float>(wide, buffer + i, m);
  }
  return buffer;
}

void close_f64(DType t, const double* tile, void* dst, std::int64_t n) {
  if (tile == dst) return;
  switch (t) {
    case DType::F64:
      return gather_up<double>(tile, dst, n);
    case DType::F32:
      return gather_up<float>(tile, dst, n);
    case DType::BF16:
      return gather_up<scalar::Bf16>(tile, dst, n);
    case DType::F16:
      return gather_up<scalar::F16>(tile, dst, n);
    default:
      return close_integers(t, tile, dst, n);
  }
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
