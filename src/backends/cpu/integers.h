// Integers of any type: their bounds, and reading operands that hold them (ids, targets,
// positions).
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

inline std::int64_t integer_at(DType t, const void* p, std::int64_t i) {
  switch (t) {
    case DType::I64:
      return static_cast<const std::int64_t*>(p)[i];
    case DType::I32:
      return static_cast<const std::int32_t*>(p)[i];
    case DType::I8:
      return static_cast<const std::int8_t*>(p)[i];
    default:  // u8, bool
      return static_cast<const std::uint8_t*>(p)[i];
  }
}

constexpr std::int64_t least_of(DType t) {
  return t == DType::I64 ? INT64_MIN : t == DType::I32 ? INT32_MIN : t == DType::I8 ? INT8_MIN : 0;
}
constexpr std::int64_t most_of(DType t) {
  return t == DType::I64   ? INT64_MAX
         : t == DType::I32 ? INT32_MAX
         : t == DType::I8  ? INT8_MAX
                           : UINT8_MAX;
}

}  // namespace aloft::cpu
