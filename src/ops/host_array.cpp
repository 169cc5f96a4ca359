#include "ops/host_array.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "scalar/float_formats.h"

namespace aloft {

std::int64_t product(const std::vector<std::int64_t>& shape, int from, int to) {
  std::int64_t n = 1;
  for (int i = from; i < to; ++i) n *= shape[i];
  return n;
}

HostArray HostArray::zeros(DType dtype, std::vector<std::int64_t> shape) {
  HostArray a;
  a.dtype = dtype;
  a.values.resize(product(shape, 0, static_cast<int>(shape.size())));
  a.shape = std::move(shape);
  return a;
}

std::int64_t HostArray::numel() const { return static_cast<std::int64_t>(values.size()); }

namespace {
template <class T>
void load_as(HostArray& a, const void* bytes) {
  const T* p = static_cast<const T*>(bytes);
  for (std::int64_t i = 0; i < a.numel(); ++i)
    if constexpr (std::is_integral_v<T>)
      a[i] = HostNumber::of(p[i]);
    else
      a[i] = static_cast<double>(p[i]);
}
template <class T>
T scalar_cast(const HostNumber& v) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::clamp<std::int64_t>(v.whole(), std::numeric_limits<T>::min(),
                                                   std::numeric_limits<T>::max()));
  else
    return static_cast<T>(static_cast<double>(v));
}
template <class T>
void store_as(const HostArray& a, void* bytes) {
  T* p = static_cast<T*>(bytes);
  for (std::int64_t i = 0; i < a.numel(); ++i) p[i] = scalar_cast<T>(a[i]);
}
}  // namespace

HostNumber wrapped(std::int64_t v, DType t) {
  switch (t) {
    case DType::I32:
      return HostNumber::of(static_cast<std::int32_t>(v));
    case DType::I8:
      return HostNumber::of(static_cast<std::int8_t>(v));
    case DType::U8:
      return HostNumber::of(static_cast<std::uint8_t>(v));
    default:
      return HostNumber::of(v);
  }
}

void load_bytes(HostArray& a, const void* bytes) {
  switch (a.dtype) {
    case DType::F64:
      return load_as<double>(a, bytes);
    case DType::F32:
      return load_as<float>(a, bytes);
    case DType::I64:
      return load_as<std::int64_t>(a, bytes);
    case DType::I32:
      return load_as<std::int32_t>(a, bytes);
    case DType::I8:
      return load_as<std::int8_t>(a, bytes);
    case DType::U8:
    case DType::Bool:
      return load_as<std::uint8_t>(a, bytes);
    case DType::BF16:
    case DType::F16: {
      const auto* p = static_cast<const std::uint16_t*>(bytes);
      for (std::int64_t i = 0; i < a.numel(); ++i)
        a[i] = a.dtype == DType::BF16 ? scalar::f64_of(scalar::Bf16{p[i]})
                                      : scalar::f64_of(scalar::F16{p[i]});
    }
  }
}

void store_bytes(const HostArray& a, void* bytes) {
  switch (a.dtype) {
    case DType::F64:
      return store_as<double>(a, bytes);
    case DType::F32:
      return store_as<float>(a, bytes);
    case DType::I64:
      return store_as<std::int64_t>(a, bytes);
    case DType::I32:
      return store_as<std::int32_t>(a, bytes);
    case DType::I8:
      return store_as<std::int8_t>(a, bytes);
    case DType::U8:
      return store_as<std::uint8_t>(a, bytes);
    case DType::Bool: {
      auto* p = static_cast<std::uint8_t*>(bytes);
      for (std::int64_t i = 0; i < a.numel(); ++i) p[i] = a[i] != 0;
      return;
    }
    case DType::BF16:
    case DType::F16: {
      auto* p = static_cast<std::uint16_t*>(bytes);
      for (std::int64_t i = 0; i < a.numel(); ++i)
        p[i] = a.dtype == DType::BF16 ? scalar::bf16_of(a[i]).bits : scalar::f16_of(a[i]).bits;
    }
  }
}

void round_to_dtype(HostArray& a) {
  if (a.dtype == DType::F64 || a.values.empty()) return;
  std::vector<std::uint64_t> bytes((a.values.size() * size_of(a.dtype) + 7) / 8);
  store_bytes(a, bytes.data());
  load_bytes(a, bytes.data());
}

BroadcastIndex::BroadcastIndex(const std::vector<std::int64_t>& shape,
                               const std::vector<std::int64_t>& out)
    : extents_(out), strides_(out.size(), 0) {
  std::int64_t stride = 1;
  const int shift = static_cast<int>(out.size()) - static_cast<int>(shape.size());
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
    strides_[i + shift] = shape[i] == 1 ? 0 : stride;
    stride *= shape[i];
  }
}

std::int64_t BroadcastIndex::operator()(std::int64_t flat) const {
  std::int64_t at = 0;
  for (int i = static_cast<int>(extents_.size()) - 1; i >= 0; --i) {
    at += flat % extents_[i] * strides_[i];
    flat /= extents_[i];
  }
  return at;
}

}  // namespace aloft
