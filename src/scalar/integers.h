// Arithmetic of integer element types, in 64 bits: sums, differences, products and powers wrap
// around (two's complement, as in PyTorch); nothing is undefined. A narrower type's result is the
// 64-bit one cut to its width, which gives what arithmetic in that width would.
#pragma once

#include <cstdint>

namespace aloft::scalar {

using Int = std::int64_t;

constexpr Int wrapping_add(Int a, Int b) {
  return static_cast<Int>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
constexpr Int wrapping_sub(Int a, Int b) {
  return static_cast<Int>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
constexpr Int wrapping_mul(Int a, Int b) {
  return static_cast<Int>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
constexpr Int wrapping_square_of_difference(Int a, Int b) {
  const Int d = wrapping_sub(a, b);
  return wrapping_mul(d, d);
}

// The last of the negative numbers is its own opposite.
constexpr Int wrapping_neg(Int a) { return wrapping_sub(0, a); }
constexpr Int wrapping_abs(Int a) { return a < 0 ? wrapping_neg(a) : a; }
constexpr Int wrapping_square(Int a) { return wrapping_mul(a, a); }
constexpr Int int_sign(Int a) { return (a > 0) - (a < 0); }

// A negative power is cut to an integer: 0 but for 1 and -1.
constexpr Int wrapping_pow(Int a, Int b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  Int result = 1;
  for (; b != 0; b >>= 1) {
    if (b & 1) result = wrapping_mul(result, a);
    a = wrapping_mul(a, a);
  }
  return result;
}

// By 0 and by -1 nothing is left.
constexpr Int int_mod(Int a, Int b) { return b == 0 || b == -1 ? 0 : a % b; }
constexpr Int int_remainder(Int a, Int b) {
  const Int r = int_mod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// The integers that bounds of floating point stand for: infinite ones, and what is past 64 bits,
// bound nothing.
constexpr Int whole_bound(double v) {
  if (v >= 0x1p63) return INT64_MAX;
  return v <= -0x1p63 ? INT64_MIN : static_cast<Int>(v);
}
constexpr Int whole_clamp(Int x, double low, double high) {
  const Int least = whole_bound(low), most = whole_bound(high);
  return x < least ? least : x > most ? most : x;
}

}  // namespace aloft::scalar
