// What is left of a trace behind its end. A function that keeps one of its tensors, in a member of
// a model or in a variable that it captured, may use it later: in another trace, in eager code, as
// an argument. It has no value there, and its number means something else or nothing.
#pragma once

#include "base/error.h"
#include "graph/tensor.h"

namespace aloft {

// A tensor is used where only those of the present program have a meaning: UserError E0304, or
// E0302 where it was never assigned.
[[noreturn]] void refuse_foreign(const Tensor& t);

// What the emitter of an ended trace passes on to: refuses everything (E0304).
Emitter& ended_trace();

}  // namespace aloft
