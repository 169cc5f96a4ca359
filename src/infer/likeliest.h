// Tokens in the order of their logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aloft {

// The `count` likeliest tokens, likeliest first, the smaller of two that are equal before the
// other; all, where there are no more. Without NaN among the logits. A few of many are selected,
// many are sorted by digits: the time grows as the number of logits, not faster.
std::vector<std::int32_t> likeliest_first(std::span<const float> logits, std::size_t count);

}  // namespace aloft
