// Values moving into a fresh arena.
#pragma once

#include <cstddef>

namespace aloft {

// Copies to memory that is zero so far, in parallel. Zeros are not written: state that starts at
// zero and was never touched takes no memory before the step that first changes it, and is then
// touched by the thread that works on it.
void move_in(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace aloft
