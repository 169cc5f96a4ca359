// Linear interpolation.
#pragma once

#include "ops/declared.h"

namespace aloft {

// a + weight * (b - a), with numpy broadcasting of all three; of bf16 and f16 computed in f32.
Tensor lerp(Operand a, Operand b, Operand weight);

}  // namespace aloft
