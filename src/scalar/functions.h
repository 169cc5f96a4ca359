// Functions that formulas are made of (scalar/terms.h), of numbers and of terms: those of the
// mathematical library, and combinations that vectors have faster ways for. Of numbers they are
// plain arithmetic and the library's; what a back end's own functions give differs from that by
// its roundings.
#pragma once

#include <cmath>
#include <numbers>
#include <type_traits>

#include "scalar/terms.h"

namespace aloft::scalar {

// A function of one number, and the term of it.
#define ALOFT_FUNCTION(name, op, ...) \
  template <Real N>                   \
  N name(N x) {                       \
    return __VA_ARGS__;               \
  }                                   \
  template <IsTerm N>                 \
  constexpr auto name(N x) {          \
    return apply<TermOp::op>(x);      \
  }
ALOFT_FUNCTION(exp, Exp, std::exp(x))
ALOFT_FUNCTION(exp2, Exp2, std::exp2(x))
ALOFT_FUNCTION(expm1, Expm1, std::expm1(x))
ALOFT_FUNCTION(log, Log, std::log(x))
ALOFT_FUNCTION(log1p, Log1p, std::log1p(x))
ALOFT_FUNCTION(log1p_of_fraction, Log1pOfFraction, std::log1p(x))  // x in [0, 1]
ALOFT_FUNCTION(sin, Sin, std::sin(x))
ALOFT_FUNCTION(cos, Cos, std::cos(x))
ALOFT_FUNCTION(tan, Tan, std::tan(x))
ALOFT_FUNCTION(asin, Asin, std::asin(x))
ALOFT_FUNCTION(acos, Acos, std::acos(x))
ALOFT_FUNCTION(atan, Atan, std::atan(x))
ALOFT_FUNCTION(sinh, Sinh, std::sinh(x))
ALOFT_FUNCTION(cosh, Cosh, std::cosh(x))
ALOFT_FUNCTION(tanh, Tanh, std::tanh(x))
ALOFT_FUNCTION(erf, Erf, std::erf(x))
ALOFT_FUNCTION(floor, Floor, std::floor(x))
ALOFT_FUNCTION(ceil, Ceil, std::ceil(x))
ALOFT_FUNCTION(round, Round, std::nearbyint(x))  // halves to even
// The normal distribution function: erfc keeps the negative tail, where 1 + erf(x) would cancel.
ALOFT_FUNCTION(normal_below, NormalBelow, N(0.5) * std::erfc(-x * (std::numbers::sqrt2_v<N> / 2)))
// e^(-x^2 / 2): the normal density times sqrt(2 pi).
ALOFT_FUNCTION(normal_bell, NormalBell, std::exp(N(-0.5) * x * x))
// 1 / x and a / b of ordinary numbers, where vectors may be a unit in the last place off.
ALOFT_FUNCTION(inverse, Inverse, N(1) / x)
#undef ALOFT_FUNCTION

template <Real N>
constexpr N quotient(N a, N b) {
  return a / b;
}
template <class A, class B>
requires Terms<A, B>
constexpr auto quotient(A a, B b) { return apply<TermOp::Quotient>(a, b); }

template <Real N>
N pow(N a, N b) {
  return std::pow(a, b);
}
template <class A, class B>
requires Terms<A, B>
constexpr auto pow(A a, B b) { return apply<TermOp::Pow>(a, b); }

// a b + c, which vectors round once.
template <Real N>
constexpr N mul_add(N a, N b, N c) {
  return a * b + c;
}
template <IsTerm A, IsTerm B, IsTerm C>
constexpr auto mul_add(A a, B b, C c) {
  return apply<TermOp::MulAdd>(a, b, c);
}

// The smaller one; b where either is NaN.
template <Real N>
constexpr N min(N a, N b) {
  return a < b ? a : b;
}
template <IsTerm A, IsTerm B>
constexpr auto min(A a, B b) {
  return apply<TermOp::Min>(a, b);
}

template <class N>
requires std::is_arithmetic_v<N>
constexpr bool is_nan(N x) {
  if constexpr (std::is_integral_v<N>) return false;
  return x != x;
}
template <IsTerm N>
constexpr auto is_nan(N x) {
  return apply<TermOp::IsNan>(x);
}
constexpr bool both(bool a, bool b) { return a && b; }
template <IsTerm A, IsTerm B>
constexpr auto both(A a, B b) {
  return apply<TermOp::And>(a, b);
}
constexpr bool either(bool a, bool b) { return a || b; }
template <IsTerm A, IsTerm B>
constexpr auto either(A a, B b) {
  return apply<TermOp::Or>(a, b);
}

// `y`, but x itself where x is NaN: for functions whose way to y loses its sign.
template <Real N>
constexpr N keep_nan(N x, N y) {
  return x != x ? x : y;
}
template <IsTerm X, IsTerm Y>
constexpr auto keep_nan(X x, Y y) {
  return apply<TermOp::KeepNan>(x, y);
}

}  // namespace aloft::scalar
