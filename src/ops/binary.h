// Element-wise arithmetic of two tensors with numpy broadcasting: one table row each in binary.cpp.
// Operands of different types meet in the type that types/promote.h names, by an explicit cast.
// Integers wrap around; their quotients and angles are f32 (docs/number-types.md).
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "graph/tensor.h"

namespace aloft {

Tensor add(Operand a, Operand b);
Tensor sub(Operand a, Operand b);
Tensor mul(Operand a, Operand b);
Tensor div(Operand a, Operand b);
Tensor pow(Operand a, Operand b);
Tensor maximum(Operand a, Operand b);  // NaN where either is
Tensor minimum(Operand a, Operand b);
Tensor squared_difference(Operand a, Operand b);
Tensor atan2(Operand a, Operand b);      // angle of the point (b, a)
Tensor mod(Operand a, Operand b);        // the sign is a's, as in C
Tensor remainder(Operand a, Operand b);  // the sign is b's, as in Python

// A constant of x's element type, shape [].
Tensor scalar_like(const Tensor& x, double value);
// A number of the program beside x, shape []: of x's type where its kind allows, see NumberKind.
// An integer beside integers wraps around to their type, or becomes its nearest bound.
enum class Ends { Wrap, Bound };
Tensor number_like(const Tensor& x, double value);
Tensor number_like(const Tensor& x, std::int64_t value, Ends ends = Ends::Wrap);

// Sums `t` over the axes that broadcasting added, so that it has the shape of `like`.
Tensor sum_to(const Tensor& t, const Tensor& like);

inline Tensor operator+(Operand a, Operand b) { return add(a, b); }
inline Tensor operator-(Operand a, Operand b) { return sub(a, b); }
inline Tensor operator*(Operand a, Operand b) { return mul(a, b); }
inline Tensor operator/(Operand a, Operand b) { return div(a, b); }

template <class T>
concept Number = std::is_arithmetic_v<T>;

// A number as one of its kind.
template <Number T>
constexpr auto number_of(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::int64_t>(value);
  else
    return static_cast<double>(value);
}

template <Number T>
Tensor number_beside(const Tensor& x, T value, Ends ends = Ends::Wrap) {
  if constexpr (std::is_integral_v<T>)
    return number_like(x, number_of(value), ends);
  else
    return number_like(x, number_of(value));
}

inline Tensor operator+(Operand a, Number auto b) { return add(a, number_beside(a.tensor, b)); }
inline Tensor operator+(Number auto a, Operand b) { return add(number_beside(b.tensor, a), b); }
inline Tensor operator-(Operand a, Number auto b) { return sub(a, number_beside(a.tensor, b)); }
inline Tensor operator-(Number auto a, Operand b) { return sub(number_beside(b.tensor, a), b); }
inline Tensor operator*(Operand a, Number auto b) { return mul(a, number_beside(a.tensor, b)); }
inline Tensor operator*(Number auto a, Operand b) { return mul(number_beside(b.tensor, a), b); }
// Quotients are of floats: the number is one from the start.
inline Tensor operator/(Operand a, Number auto b) {
  return div(a, number_like(a.tensor, static_cast<double>(b)));
}
inline Tensor operator/(Number auto a, Operand b) {
  return div(number_like(b.tensor, static_cast<double>(a)), b);
}
// The power is of a's type, its exponent what the program says: it neither wraps around nor is it
// rounded to a low type.
Tensor pow_number(const Operand& a, std::int64_t b);
Tensor pow_number(const Operand& a, double b);
inline Tensor pow(Operand a, Number auto b) { return pow_number(a, number_of(b)); }
// No integer is above its type's bounds, so a number beyond them compares as they do.
inline Tensor maximum(Operand a, Number auto b) {
  return maximum(a, number_beside(a.tensor, b, Ends::Bound));
}
inline Tensor minimum(Operand a, Number auto b) {
  return minimum(a, number_beside(a.tensor, b, Ends::Bound));
}

}  // namespace aloft
