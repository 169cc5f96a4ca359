// Element-wise comparison with numpy broadcasting; the result is bool. A comparison with NaN is
// false, except not_equal, which is true (IEEE 754).
#pragma once

#include "ops/binary.h"

namespace aloft {

Tensor equal(Operand a, Operand b);          // a == b
Tensor not_equal(Operand a, Operand b);      // a != b
Tensor less(Operand a, Operand b);           // a < b
Tensor less_equal(Operand a, Operand b);     // a <= b
Tensor greater(Operand a, Operand b);        // a > b
Tensor greater_equal(Operand a, Operand b);  // a >= b

// Inside: with a number of the program, which becomes one of a's type where its kind allows. It
// never wraps around, nor is it rounded to bf16 or f16: where a's type does not reach it, both are
// compared in i64 or f32.
Tensor compared(Tensor (*compare)(Operand, Operand), const Operand& a, std::int64_t b);
Tensor compared(Tensor (*compare)(Operand, Operand), const Operand& a, double b);

// The same with a number, which neither wraps around nor is rounded to a's type. UserError E0314
// for an unsigned one above the largest i64.
inline Tensor equal(Operand a, Number auto b) { return compared(equal, a, number_of(b)); }
inline Tensor not_equal(Operand a, Number auto b) { return compared(not_equal, a, number_of(b)); }
inline Tensor less(Operand a, Number auto b) { return compared(less, a, number_of(b)); }
inline Tensor less_equal(Operand a, Number auto b) { return compared(less_equal, a, number_of(b)); }
inline Tensor greater(Operand a, Number auto b) { return compared(greater, a, number_of(b)); }
inline Tensor greater_equal(Operand a, Number auto b) {
  return compared(greater_equal, a, number_of(b));
}

}  // namespace aloft
