// Activations and their derivatives: the one place where each formula stands. Of numbers it is the
// meaning, of terms (scalar/terms.h) the kernels' vectors and, for the derivatives, the graphs of
// the ops NAME_grad.
// A derivative d_NAME takes the same arguments as NAME. Infinite and NaN arguments follow the
// formula as written (0 * inf is NaN: gelu(-inf), silu(-inf)), which is what PyTorch does; sigmoid,
// softplus and their like reach their limits.
#pragma once

#include <numbers>

#include "scalar/arithmetic.h"

namespace aloft::scalar {

// 1 / (1 + e^-x), its derivative and its product with y, by e = e^-|x|, so that neither side
// overflows or loses its tail.
template <class X, class E>
constexpr auto sigmoid_by(X x, E e) {
  const auto r = inverse(number<X>(1) + e);
  return where(x < zero<X>(), e * r, r);
}
template <class E>
constexpr auto slope_of_sigmoid_by(E e) {
  const auto r = inverse(number<E>(1) + e);
  return e * r * r;
}
// The choice of the tail's factor does not wait for the quotient.
template <class Y, class X, class E>
constexpr auto times_sigmoid_by(Y y, X x, E e) {
  return where(x < zero<X>(), y * e, y) * inverse(number<X>(1) + e);
}

template <class X>
constexpr auto sigmoid(X x) {
  return named<FormulaName::Sigmoid>(sigmoid_by(x, exp(-abs(x))), x);
}
template <class X>
constexpr auto d_sigmoid(X x) {
  return named<FormulaName::SigmoidSlope>(slope_of_sigmoid_by(exp(-abs(x))), x);
}
// 1 / (1 + 2^-t), and its derivative for t ln(2).
template <class T>
constexpr auto sigmoid2(T t) {
  return named<FormulaName::Sigmoid2>(sigmoid_by(t, exp2(-abs(t))), t);
}
template <class T>
constexpr auto slope_of_sigmoid2(T t) {
  return named<FormulaName::Sigmoid2Slope>(slope_of_sigmoid_by(exp2(-abs(t))), t);
}

// log(1 + e^x), whose derivative is the sigmoid.
template <class X>
constexpr auto softplus(X x) {
  return where(x < zero<X>(), zero<X>(), x) + log1p_of_fraction(exp(-abs(x)));
}
template <class X>
constexpr auto d_softplus(X x) {
  return sigmoid(x);
}
// log(sigmoid(x)) = -softplus(-x).
template <class X>
constexpr auto log_sigmoid(X x) {
  return -softplus(-x);
}
template <class X>
constexpr auto d_log_sigmoid(X x) {
  return sigmoid(-x);
}

// x Phi(x), Phi the normal distribution function; the derivative is Phi(x) + x phi(x).
template <class X>
constexpr auto gelu(X x) {
  return x * normal_below(x);
}
template <class X>
constexpr auto d_gelu(X x) {
  const auto height = number<X>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return keep_nan(x, mul_add(x * height, normal_bell(x), normal_below(x)));
}

// 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3); Hendrycks and Gimpel 2016, GPT-2's form.
// 0.5 (1 + tanh(u)) is sigmoid(2 u).
inline constexpr double kGeluSlope = 2 * std::numbers::inv_sqrtpi * std::numbers::sqrt2;
inline constexpr double kGeluCube = 0.044715;
// 2 u in powers of two, from x and its square.
template <class X, class X2>
constexpr auto gelu_tanh_power(X x, X2 x2) {
  const auto slope = number<X>(kGeluSlope * std::numbers::log2e);
  return x * mul_add(x2, number<X>(kGeluCube) * slope, slope);
}
template <class X>
constexpr auto gelu_tanh(X x) {
  const auto t = gelu_tanh_power(x, x * x);
  return times_sigmoid_by(x, t, exp2(-abs(t)));
}
template <class X>
constexpr auto d_gelu_tanh(X x) {
  // Where the square could overflow, the slope has long been 0; an infinite x still gives NaN.
  const auto x2 = min(number<X>(1e6), x * x);
  const auto t = gelu_tanh_power(x, x2);
  const auto slope = number<X>(kGeluSlope);
  const auto du = mul_add(x2, number<X>(3 * kGeluCube) * slope, slope);
  return mul_add(x * slope_of_sigmoid2(t), du, sigmoid2(t));
}

// x sigmoid(x); also called swish.
template <class X>
constexpr auto silu(X x) {
  return times_sigmoid_by(x, x, exp(-abs(x)));
}
template <class X>
constexpr auto d_silu(X x) {
  return mul_add(x, d_sigmoid(x), sigmoid(x));
}

// tanh(softplus(x)) = tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2), e = e^x; from x = 20 on it
// is 1.
template <class X>
constexpr auto tanh_of_softplus(X x) {
  const auto most = number<X>(20);
  return let(exp(where(x > most, most, x)), [](auto e) {
    const auto n = e * (e + number<X>(2));
    return quotient(n, n + number<X>(2));
  });
}
// x tanh(softplus(x)); Misra 2019.
template <class X>
constexpr auto mish(X x) {
  return x * tanh_of_softplus(x);
}
template <class X>
constexpr auto d_mish(X x) {
  return let(tanh_of_softplus(x),
             [x](auto t) { return mul_add(x, mul_add(-t, t, number<X>(1)) * sigmoid(x), t); });
}

// NaN stays NaN, and at NaN the derivative is 1: a cotangent that is NaN goes on. At 0 it is 0.
template <class X>
constexpr auto relu(X x) {
  return where(x < zero<X>(), zero<X>(), x);
}
template <class X>
constexpr auto d_relu(X x) {
  return where(x <= zero<X>(), zero<X>(), number<X>(1));
}
template <class X>
constexpr auto relu6(X x) {
  return clamp(x, number<X>(0), number<X>(6));
}
template <class X>
constexpr auto d_relu6(X x) {
  return inside(x, number<X>(0), number<X>(6), number<X>(1));
}
// The derivatives of this one and of elu are those of the left side at 0.
template <class X, class A>
constexpr auto leaky_relu(X x, A slope) {
  return where(x < zero<X>(), x * slope, x);
}
template <class X, class A>
constexpr auto d_leaky_relu(X x, A slope) {
  return where(x > zero<X>(), number<X>(1), slope);
}

// alpha (e^x - 1) below 0.
template <class X, class A>
constexpr auto elu(X x, A alpha) {
  return where(x < zero<X>(), expm1(x) * alpha, x);
}
// `above` for x > 0, else alpha e^x, which is bounded where it is not taken.
template <class X, class A, class B>
constexpr auto slope_of_elu(X x, A alpha, B above) {
  return where(x > zero<X>(), above, exp(where(x > zero<X>(), zero<X>(), x)) * alpha);
}
template <class X, class A>
constexpr auto d_elu(X x, A alpha) {
  return slope_of_elu(x, alpha, number<X>(1));
}
// Klambauer et al. 2017.
inline constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
template <class X>
constexpr auto selu(X x) {
  return elu(x, number<X>(kSeluAlpha)) * number<X>(kSeluScale);
}
template <class X>
constexpr auto d_selu(X x) {
  const auto scale = number<X>(kSeluScale);
  return slope_of_elu(x, number<X>(kSeluAlpha) * scale, scale);
}

// relu6(x + 3) / 6; Howard et al. 2019.
template <class X>
constexpr auto hard_sigmoid(X x) {
  return named<FormulaName::HardSigmoid>(relu6(x + number<X>(3)) / number<X>(6), x);
}
template <class X>
constexpr auto d_hard_sigmoid(X x) {
  return inside(x, number<X>(-3), number<X>(3), number<X>(1.0 / 6));
}
template <class X>
constexpr auto hard_swish(X x) {
  return x * hard_sigmoid(x);
}
template <class X>
constexpr auto d_hard_swish(X x) {
  return hard_sigmoid(x) + inside(x, number<X>(-3), number<X>(3), x * number<X>(1.0 / 6));
}

template <class X>
constexpr auto softsign(X x) {
  return x / (number<X>(1) + abs(x));
}
template <class X>
constexpr auto d_softsign(X x) {
  const auto d = number<X>(1) + abs(x);
  return number<X>(1) / d / d;
}

}  // namespace aloft::scalar
