// Linear interpolation.
#pragma once

#include "ops/declared.h"

namespace aloft {

// a + weight * (b - a), with numpy broadcasting of all three.
Tensor lerp(Operand a, Operand b, Operand weight);

}  // namespace aloft
