// Whole parts of an extent. Arguments are not negative, the unit is positive.
#pragma once

#include <cstdint>

namespace aloft::cpu {

constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit; }
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return ceil_div(n, unit) * unit;
}

}  // namespace aloft::cpu
