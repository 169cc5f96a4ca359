// Whether the values of a variable are numbers: what a state shows of itself without any loss.
#pragma once

#include "types/variable.h"

namespace aloft {

// Of a variable of another type than the floats: false, and true.
bool has_nan(const Variable& v);
bool has_only_finite(const Variable& v);

}  // namespace aloft
