// A tensor for people: type, shape, values. <aloft/format.h> makes fmt::print("{}", tensor) of it.
#pragma once

#include <string>

#include "graph/tensor.h"

namespace aloft {

// "f32[2,3]", a line further its values in brackets, row by row, in columns of one width. Above
// 1,000 elements the first and last three along each axis are shown. While tracing there are no
// values yet: "f32[2,3], traced". Of an undefined tensor "undefined".
std::string to_text(const Tensor& tensor);

}  // namespace aloft
