// Chooses element by element between two tensors.
#pragma once

#include "graph/tensor.h"

namespace aloft {

// condition ? a : b, with numpy broadcasting of all three. condition: bool;
// a and b meet in one type (types/promote.h).
Tensor where(Operand condition, Operand a, Operand b);

}  // namespace aloft
