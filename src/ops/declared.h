// Tensor and Operand declared, not defined. A header with an op's attributes includes this one and
// not the graph's, so that a back end can read the attributes; callers include graph/tensor.h.
#pragma once

#include <vector>

#include "types/attrs.h"

namespace aloft {

class Tensor;
struct Operand;

}  // namespace aloft
