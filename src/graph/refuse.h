// Refusals of a value: while a function is traced they say which of its arguments the value is, or
// was computed from.
#pragma once

#include "base/error.h"
#include "graph/tensor.h"

namespace aloft {

// Throws the refusal, with a line "from" where there is a traced function's argument behind `value`
// or it is a variable's.
[[noreturn]] void refuse(UserError refusal, const Tensor& value);

}  // namespace aloft
