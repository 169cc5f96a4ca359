// Whole parts of an extent. Arguments are not negative, the unit is positive.
#pragma once

#include <algorithm>
#include <cstdint>

namespace aloft::cpu {

constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit; }
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return ceil_div(n, unit) * unit;
}
// `extent` cut into equal parts of at most `most`, each a multiple of `unit`; one at least.
constexpr std::int64_t even_part(std::int64_t extent, std::int64_t most, std::int64_t unit) {
  const std::int64_t parts = std::max<std::int64_t>(1, ceil_div(extent, most));
  return round_up(std::max<std::int64_t>(1, ceil_div(extent, parts)), unit);
}

}  // namespace aloft::cpu
