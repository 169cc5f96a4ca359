// Inside: what results of update ops that lie in bytes stand for: split masters, states in blocks.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/name.h"
#include "ops/host_array.h"
#include "types/attrs.h"

namespace aloft {

struct ValuesOfUpdate {
  HostArray values;  // f32, of the parameter's shape
  // How far each may be from another that is as right: of states in blocks, which are rounded at
  // random, the distance of two codes there, and what f32 loses beside the block's largest.
  std::vector<double> apart = {};
};

// Of result `i` of a call whose results are `out`; nothing where the result is the values itself.
std::optional<ValuesOfUpdate> values_of_update(Name op, const Attrs& attrs,
                                               const std::vector<HostArray>& out, std::size_t i);

// Whether elements of it are computed in f32 and summed in double: sums of an update, statistics.
bool sums_f32_in_double(Name op, const HostArray& result);

}  // namespace aloft
