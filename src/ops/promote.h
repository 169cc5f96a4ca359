// Casts operands of different element types to the one that they meet in (types/promote.h). These
// casts are not the user's: a precision policy may leave them out again.
#pragma once

#include "ops/declared.h"
#include "types/promote.h"

namespace aloft {

// The operand in another type, its place in the user's program kept.
Operand as_type(Operand x, DType t);
// Gives both the type that they meet in.
void meet(Operand& a, Operand& b);

}  // namespace aloft
