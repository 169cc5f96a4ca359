// A value as a function of others, whose gradients somebody else gives.
#pragma once

#include <vector>

#include "ops/declared.h"

namespace aloft {

// y, of its type and shape, whose gradient reaches each of x, as zeros: hooks there put others in
// their place (frontend/custom_gradient.h). At least one x.
Tensor function_of(Operand y, const std::vector<Tensor>& x);

}  // namespace aloft
