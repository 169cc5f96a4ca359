#include "backends/cpu/vectors/integer_tiles.h"

#include <algorithm>

namespace aloft::cpu {
namespace {

template <class From, class To>
void convert(const void* from, void* to, std::int64_t n) {
  const From* p = static_cast<const From*>(from);
  To* q = static_cast<To*>(to);
  for (std::int64_t i = 0; i < n; ++i) q[i] = static_cast<To>(p[i]);
}

}  // namespace

const std::int64_t* open_i64(DType t, const void* src, std::int64_t* buffer, std::int64_t n) {
  switch (t) {
    case DType::I64:
      return static_cast<const std::int64_t*>(src);
    case DType::I32:
      convert<std::int32_t, std::int64_t>(src, buffer, n);
      break;
    case DType::I8:
      convert<std::int8_t, std::int64_t>(src, buffer, n);
      break;
    default:  // u8, bool
      convert<std::uint8_t, std::int64_t>(src, buffer, n);
  }
  return buffer;
}

void close_i64(DType t, const std::int64_t* tile, void* dst, std::int64_t n) {
  if (tile == dst) return;
  switch (t) {
    case DType::I64:
      std::copy_n(tile, n, static_cast<std::int64_t*>(dst));
      return;
    case DType::I32:
      return convert<std::int64_t, std::int32_t>(tile, dst, n);
    case DType::I8:
      return convert<std::int64_t, std::int8_t>(tile, dst, n);
    case DType::U8:
      return convert<std::int64_t, std::uint8_t>(tile, dst, n);
    default:
      return convert<std::int64_t, bool>(tile, dst, n);
  }
}

}  // namespace aloft::cpu
