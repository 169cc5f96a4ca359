// What extents that a user names come to: sums and products that say when they leave 63 bits.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace aloft {

// Most axes of a tensor: what kernels' tables of axes hold.
inline constexpr int kMaxRank = 8;

[[noreturn]] inline void extent_too_large(std::int64_t a, const char* sign, std::int64_t b) {
  throw UserError("E0103", "a tensor's size does not fit into 63 bits")
      .saw(std::to_string(a) + sign + std::to_string(b))
      .need("less than 2^63");
}

// UserError E0103 beyond 63 bits.
inline std::int64_t extent_sum(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) extent_too_large(a, " + ", b);
  return r;
}
inline std::int64_t extent_product(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) extent_too_large(a, " * ", b);
  return r;
}

}  // namespace aloft
