// Pairs of standard normal numbers from random words, many at a time (scalar/philox.h has the
// definition, Box and Muller's).
#pragma once

#include <cstdint>

namespace aloft::cpu {

// normal[2i], normal[2i + 1] = normal_pair_of_bits(words[2i], words[2i + 1]) for 2i in [0, n),
// within a few units in the last place of a double: rounded to float, all but some 1 in 10^8 are
// the same bits. Both arrays have room for n rounded up to a multiple of 64.
void normal_pairs(const std::uint32_t* words, std::int64_t n, double* normal);

}  // namespace aloft::cpu
