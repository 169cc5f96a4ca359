// Which examples of those that lie in memory are held out for validation: one rule for all sources.
#pragma once

#include <cstdint>
#include <vector>

namespace aloft {

// One for each of so many examples; `held_out` of them (at most all), drawn by the seed and by
// nothing else.
std::vector<bool> held_out_of(std::uint64_t examples, std::uint64_t held_out, std::uint64_t seed);

}  // namespace aloft
