// Reads and writes at a place in an open file that end where the file does or the system fails: not
// at a signal, and not where it moves fewer bytes than it was asked to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace aloft {

struct Moved {
  std::size_t bytes = 0;
  int error = 0;  // the errno that ended it; 0 where none did
};

// Fills `out` from byte `offset` on; fewer bytes without an error: the file ends there.
Moved pread_all(int fd, std::uint64_t offset, std::span<char> out);

Moved pwrite_all(int fd, std::uint64_t offset, std::span<const std::byte> bytes);

}  // namespace aloft
