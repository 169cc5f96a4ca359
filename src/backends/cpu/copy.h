// Bytes from one place of the host's memory to another.
#pragma once

#include <cstddef>

namespace aloft::cpu {

// In parallel.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes);
// The same to memory that is zero so far. Zeros are not written: state that starts at zero and was
// never touched takes no memory before the step that first changes it, and is then touched by the
// thread that works on it.
void copy_to_zeros(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace aloft::cpu
