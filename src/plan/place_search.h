// Placement under a given capacity, by search. Deterministic: bounded by nodes, never by a clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/lifetime.h"

namespace aloft {

inline constexpr int kMostSearched = 1024;  // buffers; beyond, there is no search

// Offsets (multiples of kAlignment) with no overlap and no end above `capacity`; nothing where
// there are none or where `nodes` nodes of the search did not find them.
std::optional<std::vector<std::size_t>> place_within(std::span<const Lifetime> buffers,
                                                     std::size_t capacity, std::int64_t nodes);

}  // namespace aloft
