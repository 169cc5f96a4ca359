// Element-wise arithmetic of two tensors with numpy broadcasting: one table row each in binary.cpp.
// Operands of different float types are widened to the wider one by an explicit cast.
#pragma once

#include <concepts>

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

// Sums `t` over the axes that broadcasting added, so that it has the shape of `like`.
Tensor sum_to(const Tensor& t, const Tensor& like);

inline Tensor operator+(Operand a, Operand b) { return add(a, b); }
inline Tensor operator-(Operand a, Operand b) { return sub(a, b); }
inline Tensor operator*(Operand a, Operand b) { return mul(a, b); }
inline Tensor operator/(Operand a, Operand b) { return div(a, b); }

template <class T>
concept Number = std::is_arithmetic_v<T>;

inline Tensor operator+(Operand a, Number auto b) { return add(a, scalar_like(a.tensor, b)); }
inline Tensor operator+(Number auto a, Operand b) { return add(scalar_like(b.tensor, a), b); }
inline Tensor operator-(Operand a, Number auto b) { return sub(a, scalar_like(a.tensor, b)); }
inline Tensor operator-(Number auto a, Operand b) { return sub(scalar_like(b.tensor, a), b); }
inline Tensor operator*(Operand a, Number auto b) { return mul(a, scalar_like(a.tensor, b)); }
inline Tensor operator*(Number auto a, Operand b) { return mul(scalar_like(b.tensor, a), b); }
inline Tensor operator/(Operand a, Number auto b) { return div(a, scalar_like(a.tensor, b)); }
inline Tensor operator/(Number auto a, Operand b) { return div(scalar_like(b.tensor, a), b); }

}  // namespace aloft
