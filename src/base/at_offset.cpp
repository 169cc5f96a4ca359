#include "base/at_offset.h"

#include <unistd.h>

#include <cerrno>

namespace aloft {

Moved pread_all(int fd, std::uint64_t offset, std::span<char> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {done, errno};
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return {done, 0};
}

Moved pwrite_all(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put =
        ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return {done, errno};
    done += static_cast<std::size_t>(put);
  }
  return {done, 0};
}

}  // namespace aloft
