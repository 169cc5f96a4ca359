// Element-wise arithmetic of two tensors with numpy broadcasting: one table row each in binary.cpp.
// Operands of different types meet in the type that types/promote.h names, by an explicit cast.
// Integers wrap around; their quotients and angles are f32 (docs/number-types.md).
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "graph/tensor.h"

namespace aloft {

Tensor add(Operand a, Operand b);                 // a + b
Tensor sub(Operand a, Operand b);                 // a - b
Tensor mul(Operand a, Operand b);                 // a * b
Tensor div(Operand a, Operand b);                 // a / b; of integers: f32
Tensor pow(Operand a, Operand b);                 // a to the power b
Tensor maximum(Operand a, Operand b);             // the larger; NaN where either is
Tensor minimum(Operand a, Operand b);             // the smaller; NaN where either is
Tensor squared_difference(Operand a, Operand b);  // (a - b)^2
Tensor atan2(Operand a, Operand b);  // angle of the point (b, a), in (-pi, pi]; of integers: f32
Tensor mod(Operand a, Operand b);    // what division leaves; its sign is a's, as in C
Tensor remainder(Operand a, Operand b);  // what division leaves; its sign is b's, as in Python

// Inside: a constant of x's element type, shape [].
Tensor scalar_like(const Tensor& x, double value);
// A number of the program beside x, shape []: of x's type where its kind allows, see NumberKind.
// An integer beside integers wraps around to their type, or becomes its nearest bound.
enum class Ends { Wrap, Bound };
Tensor number_like(const Tensor& x, double value);
Tensor number_like(const Tensor& x, std::int64_t value, Ends ends = Ends::Wrap);

// Inside: sums `t` over the axes that broadcasting added, so that it has the shape of `like`.
Tensor sum_to(const Tensor& t, const Tensor& like);

// As add, sub, mul and div.
inline Tensor operator+(Operand a, Operand b) { return add(a, b); }
inline Tensor operator-(Operand a, Operand b) { return sub(a, b); }
inline Tensor operator*(Operand a, Operand b) { return mul(a, b); }
inline Tensor operator/(Operand a, Operand b) { return div(a, b); }

// A number of the program, which may stand beside a tensor: of any integer or floating type, or
// bool.
template <class T>
concept Number = std::is_arithmetic_v<T>;

// Inside: a number as one of its kind. UserError E0314 above the largest i64, which no tensor
// holds.
std::int64_t signed_of(std::uint64_t value);
template <Number T>
constexpr auto number_of(T value) {
  if constexpr (std::is_unsigned_v<T> && sizeof(T) >= sizeof(std::int64_t))
    return signed_of(value);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<std::int64_t>(value);
  else
    return static_cast<double>(value);
}

// Inside: `op` of a tensor and a number of the program. What a's low type (bf16, f16) does not hold
// exactly is not rounded to it: the op is computed in f32, and its result is rounded once.
enum class Side { Left, Right };  // of the op, where the number stands
Tensor with_number(Name op, const Operand& a, double b, Side side = Side::Right);
Tensor with_number(Name op, const Operand& a, std::int64_t b, Side side = Side::Right,
                   Ends ends = Ends::Wrap);

// As add, sub and mul, with a number of the program beside a tensor: the result is of the tensor's
// type where the number's kind allows (docs/number-types.md). UserError E0314 for an unsigned
// number above the largest i64.
inline Tensor operator+(Operand a, Number auto b) { return with_number("add", a, number_of(b)); }
inline Tensor operator+(Number auto a, Operand b) {
  return with_number("add", b, number_of(a), Side::Left);
}
inline Tensor operator-(Operand a, Number auto b) { return with_number("sub", a, number_of(b)); }
inline Tensor operator-(Number auto a, Operand b) {
  return with_number("sub", b, number_of(a), Side::Left);
}
inline Tensor operator*(Operand a, Number auto b) { return with_number("mul", a, number_of(b)); }
inline Tensor operator*(Number auto a, Operand b) {
  return with_number("mul", b, number_of(a), Side::Left);
}
// As div. Quotients are of floats: the number is one from the start.
inline Tensor operator/(Operand a, Number auto b) {
  return with_number("div", a, static_cast<double>(b));
}
inline Tensor operator/(Number auto a, Operand b) {
  return with_number("div", b, static_cast<double>(a), Side::Left);
}

// Inside: the power is of a's type, its exponent what the program says: it neither wraps around nor
// is it rounded to a low type.
Tensor pow_number(const Operand& a, std::int64_t b);
Tensor pow_number(const Operand& a, double b);

// a to the power b, of a's type; b is not rounded to it. UserError E0314 as above.
inline Tensor pow(Operand a, Number auto b) { return pow_number(a, number_of(b)); }
// The larger of element and number; NaN stays. No integer is above its type's bounds, so a number
// beyond them compares as they do. UserError E0314 as above.
inline Tensor maximum(Operand a, std::integral auto b) {
  return with_number("maximum", a, number_of(b), Side::Right, Ends::Bound);
}
inline Tensor maximum(Operand a, std::floating_point auto b) {
  return with_number("maximum", a, number_of(b));
}
// The smaller, likewise. UserError E0314 as above.
inline Tensor minimum(Operand a, std::integral auto b) {
  return with_number("minimum", a, number_of(b), Side::Right, Ends::Bound);
}
inline Tensor minimum(Operand a, std::floating_point auto b) {
  return with_number("minimum", a, number_of(b));
}

}  // namespace aloft
