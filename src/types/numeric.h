// What is numerically safe for an op, said once at the op (architecture, section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace aloft {

enum class Numeric : std::uint8_t {
  Narrow,  // matmul, convolution, attention: low-precision inputs, wide accumulation
  Follow,  // element-wise and shape ops: whatever their inputs are
  Widen,   // exp, long sums, norms, losses: need range and precision
  Exact,   // indices, masks, state: types are never changed
};

constexpr std::string_view name_of(Numeric n) {
  constexpr std::string_view names[] = {"narrow", "follow", "widen", "exact"};
  return names[static_cast<int>(n)];
}

constexpr std::optional<Numeric> parse_numeric(std::string_view text) {
  for (Numeric n : {Numeric::Narrow, Numeric::Follow, Numeric::Widen, Numeric::Exact})
    if (name_of(n) == text) return n;
  return std::nullopt;
}

}  // namespace aloft
