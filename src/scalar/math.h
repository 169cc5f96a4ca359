// Scalar functions and their derivatives, for float and double: the one place where an activation's
// formula stands. Back ends vectorise them and are tested against these in double.
// A derivative d_NAME takes the same argument(s) as NAME, unless its name says otherwise. Infinite
// and NaN arguments follow the formula as written (0 * inf is NaN: gelu(-inf), silu(-inf)), which
// is what PyTorch does; sigmoid, tanh, softplus and their like reach their limits.
#pragma once

#include <cmath>
#include <numbers>

#include "scalar/terms.h"

namespace aloft::scalar {

template <Real T>
inline constexpr T kInvSqrt2 = std::numbers::sqrt2_v<T> / T(2);
// 1 / sqrt(2 pi): the height of the normal density at 0.
template <Real T>
inline constexpr T kInvSqrt2Pi = std::numbers::inv_sqrtpi_v<T>* kInvSqrt2<T>;
// sqrt(2 / pi), of the tanh form of gelu.
template <Real T>
inline constexpr T kSqrt2OverPi = std::numbers::inv_sqrtpi_v<T>* std::numbers::sqrt2_v<T>;

// 1 / (1 + e^-x). Written on e^-|x|, so that neither side overflows or loses its tail.
template <Real T>
T sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return (x >= T(0) ? T(1) : x < T(0) ? e : x) / (T(1) + e);
}
template <Real T>
T d_sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return e / ((T(1) + e) * (T(1) + e));
}
// log(sigmoid(x)) = -softplus(-x).
template <Real T>
T softplus(T x) {
  return (x > T(0) ? x : x <= T(0) ? T(0) : x) + std::log1p(std::exp(-std::abs(x)));
}
template <Real T>
T d_softplus(T x) {
  return sigmoid(x);
}
template <Real T>
T log_sigmoid(T x) {
  return -softplus(-x);
}
template <Real T>
T d_log_sigmoid(T x) {
  return sigmoid(-x);
}

template <Real T>
T erf(T x) {
  return std::erf(x);
}
// 2 / sqrt(pi) e^(-x^2)
template <Real T>
T d_erf(T x) {
  return T(2) * std::numbers::inv_sqrtpi_v<T> * std::exp(-x * x);
}

template <Real T>
T d_tanh_from_output(T y) {
  return T(1) - y * y;
}
template <Real T>
T d_tanh(T x) {
  const T c = std::cosh(x);
  return T(1) / (c * c);
}

// x * Phi(x), Phi the normal distribution function. erfc keeps the negative tail, where 1 + erf(x)
// would cancel.
template <Real T>
T gelu(T x) {
  return T(0.5) * x * std::erfc(-x * kInvSqrt2<T>);
}
// Phi(x) + x phi(x)
template <Real T>
T d_gelu(T x) {
  return T(0.5) * std::erfc(-x * kInvSqrt2<T>) + x * (kInvSqrt2Pi<T> * std::exp(T(-0.5) * x * x));
}
// 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3); Hendrycks and Gimpel 2016, GPT-2's form.
// 0.5 (1 + tanh(u)) is sigmoid(2 u).
template <Real T>
T gelu_tanh(T x) {
  return x * sigmoid(T(2) * kSqrt2OverPi<T> * x * (T(1) + T(0.044715) * x * x));
}
template <Real T>
T d_gelu_tanh(T x) {
  const T u2 = T(2) * kSqrt2OverPi<T> * x * (T(1) + T(0.044715) * x * x);
  const T du2 = T(2) * kSqrt2OverPi<T> * (T(1) + T(3) * T(0.044715) * x * x);
  return sigmoid(u2) + x * d_sigmoid(u2) * du2;
}

// x sigmoid(x); also called swish.
template <Real T>
T silu(T x) {
  return x * sigmoid(x);
}
template <Real T>
T d_silu(T x) {
  return sigmoid(x) + x * d_sigmoid(x);
}
// x tanh(softplus(x)); Misra 2019.
template <Real T>
T mish(T x) {
  return x * std::tanh(softplus(x));
}
template <Real T>
T d_mish(T x) {
  const T t = std::tanh(softplus(x));
  return t + x * (T(1) - t * t) * sigmoid(x);
}

// NaN stays NaN, and at NaN the derivative is 1: a cotangent that is NaN goes on. At 0 it is 0.
template <Real T>
T relu(T x) {
  return x < T(0) ? T(0) : x;
}
template <Real T>
T d_relu(T x) {
  return x <= T(0) ? T(0) : T(1);
}
template <Real T>
T relu6(T x) {
  return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
}
template <Real T>
T d_relu6(T x) {
  return x > T(0) && x < T(6) ? T(1) : x == x ? T(0) : x;
}
// The derivatives of this one and of elu are those of the left side at 0.
template <Real T>
T leaky_relu(T x, T slope) {
  return x < T(0) ? slope * x : x;
}
template <Real T>
T d_leaky_relu(T x, T slope) {
  return x > T(0) ? T(1) : slope;
}
// alpha (e^x - 1) below 0.
template <Real T>
T elu(T x, T alpha) {
  return x < T(0) ? alpha * std::expm1(x) : x;
}
template <Real T>
T d_elu(T x, T alpha) {
  return x > T(0) ? T(1) : alpha * std::exp(x);
}
// Klambauer et al. 2017.
template <Real T>
inline constexpr T kSeluAlpha = T(1.6732632423543772848170429916717);
template <Real T>
inline constexpr T kSeluScale = T(1.0507009873554804934193349852946);
template <Real T>
T selu(T x) {
  return kSeluScale<T> * elu(x, kSeluAlpha<T>);
}
template <Real T>
T d_selu(T x) {
  return kSeluScale<T> * d_elu(x, kSeluAlpha<T>);
}
// relu6(x + 3) / 6; Howard et al. 2019.
template <Real T>
T hard_sigmoid(T x) {
  return relu6(x + T(3)) / T(6);
}
template <Real T>
T d_hard_sigmoid(T x) {
  return d_relu6(x + T(3)) / T(6);
}
template <Real T>
T hard_swish(T x) {
  return x * hard_sigmoid(x);
}
template <Real T>
T d_hard_swish(T x) {
  return hard_sigmoid(x) + x * d_hard_sigmoid(x);
}
template <Real T>
T softsign(T x) {
  return x / (T(1) + std::abs(x));
}
template <Real T>
T d_softsign(T x) {
  const T d = T(1) + std::abs(x);
  return T(1) / (d * d);
}

}  // namespace aloft::scalar
