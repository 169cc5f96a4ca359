// What this process has used so far.
#pragma once

#include <cstdint>

namespace aloft {

// Largest resident size of this process so far, in bytes.
std::uint64_t peak_rss_bytes();

}  // namespace aloft
