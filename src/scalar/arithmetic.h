// What element-wise ops of one tensor and of two compute, each formula once (scalar/terms.h):
// the meaning in double, integers where they have the same formula, and the kernels' vectors.
#pragma once

#include <cmath>

#include "scalar/functions.h"

namespace aloft::scalar {

template <class N>
constexpr auto neg(N x) {
  return -x;
}
template <class N>
constexpr auto square(N x) {
  return x * x;
}
template <class N>
constexpr auto rsqrt(N x) {
  return number<N>(1) / sqrt(x);
}
template <class N>
constexpr auto reciprocal(N x) {
  return number<N>(1) / x;
}

template <class A, class B>
constexpr auto add(A a, B b) {
  return a + b;
}
template <class A, class B>
constexpr auto sub(A a, B b) {
  return a - b;
}
template <class A, class B>
constexpr auto mul(A a, B b) {
  return a * b;
}
template <class A, class B>
constexpr auto div(A a, B b) {
  return a / b;
}
template <class A, class B>
constexpr auto squared_difference(A a, B b) {
  return (a - b) * (a - b);
}
// NaN where either is.
template <class A, class B>
constexpr auto maximum(A a, B b) {
  return where(either(is_nan(a), a >= b), a, b);
}
template <class A, class B>
constexpr auto minimum(A a, B b) {
  return where(either(is_nan(a), a <= b), a, b);
}

template <class A, class B>
constexpr auto equal(A a, B b) {
  return a == b;
}
template <class A, class B>
constexpr auto not_equal(A a, B b) {
  return a != b;
}
template <class A, class B>
constexpr auto less(A a, B b) {
  return a < b;
}
template <class A, class B>
constexpr auto less_equal(A a, B b) {
  return a <= b;
}
template <class A, class B>
constexpr auto greater(A a, B b) {
  return a > b;
}
template <class A, class B>
constexpr auto greater_equal(A a, B b) {
  return a >= b;
}

// x where low <= x <= high (NaN too), the nearer bound elsewhere.
template <class X, class L, class H>
constexpr auto clamp(X x, L low, H high) {
  const auto y = where(x < low, low, x);
  return where(y > high, high, y);
}
// y where low < x < high, else 0.
template <class X, class L, class H, class Y>
constexpr auto inside(X x, L low, H high, Y y) {
  return where(both(x > low, x < high), y, zero<X>());
}

// Of two numbers, as no vectors have them.
template <Real N>
N atan2(N a, N b) {
  return std::atan2(a, b);
}
template <Real N>
N mod(N a, N b) {
  return std::fmod(a, b);
}
// The sign follows b, as in Python; a multiple of b gives 0.
template <Real N>
N remainder(N a, N b) {
  const N r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

}  // namespace aloft::scalar
