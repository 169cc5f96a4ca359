// Casts operands of different element types to the one that they meet in (types/promote.h). These
// casts are not the user's: a precision policy may leave them out again.
#pragma once

#include <cstdint>

#include "ops/declared.h"
#include "types/promote.h"

namespace aloft {

// The operand in another type, its place in the user's program kept.
Operand as_type(Operand x, DType t);
// Whether a tensor of type t can hold the integer without wrapping around; of no integers: yes.
bool reaches(DType t, std::int64_t value);
// Whether a tensor of float type t can hold the number as it is. Of f32 and f64: yes, their
// rounding is what arithmetic in them is about.
bool holds(DType t, double value);
// Gives both the type that they meet in.
void meet(Operand& a, Operand& b);

}  // namespace aloft
