// Reading operands that hold integers of any type: ids, targets, positions.
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

}  // namespace aloft::cpu
