#include "ops/host_array.h"

#include <cmath>
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
  a.values.assign(product(shape, 0, static_cast<int>(shape.size())), 0.0);
  a.shape = std::move(shape);
  return a;
}

std::int64_t HostArray::numel() const { return static_cast<std::int64_t>(values.size()); }

namespace {
template <class T>
void load_as(HostArray& a, const void* bytes) {
  const T* p = static_cast<const T*>(bytes);
  for (std::int64_t i = 0; i < a.numel(); ++i) a[i] = static_cast<double>(p[i]);
}
// Out of range and NaN have no integer: they become the nearest bound, and 0.
template <class T>
T scalar_cast(double v) {
  if constexpr (std::is_integral_v<T>) {
    if (std::isnan(v)) return 0;
    if (v <= static_cast<double>(std::numeric_limits<T>::min()))
      return std::numeric_limits<T>::min();
    if (v >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
  }
  return static_cast<T>(v);
}
template <class T>
void store_as(const HostArray& a, void* bytes) {
  T* p = static_cast<T*>(bytes);
  for (std::int64_t i = 0; i < a.numel(); ++i) p[i] = scalar_cast<T>(a[i]);
}
}  // namespace

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
