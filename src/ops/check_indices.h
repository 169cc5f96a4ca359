// Indices are looked at where their values are known: an eager call refuses what a compiled program
// can only answer with NaN.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/name.h"
#include "graph/tensor.h"

namespace aloft {

// UserError E0214 where an element of `indices`, an eager tensor of integers, is neither in
// [0, count) nor `ignored`. `what` names one of them: "a target". Other tensors pass.
void check_indices(Name op, std::string_view what, const Operand& indices, std::int64_t count,
                   std::optional<std::int64_t> ignored = std::nullopt);

}  // namespace aloft
