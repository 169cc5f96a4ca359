#include "base/read_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace aloft {
namespace {

// Open for reading while it lives; what fails here read_file() says.
class Pipe {
 public:
  explicit Pipe(const Path& path) : fd_(::open(system_path(path), kFlags)) {
    struct stat info {};
    is_pipe_ = fd_ >= 0 && ::fstat(fd_, &info) == 0 && S_ISFIFO(info.st_mode);
  }
  ~Pipe() {
    if (fd_ >= 0) ::close(fd_);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // A pipe that no writer has opened yet reads as one that all have left; poll knows the two apart.
  void await_writer() const {
    pollfd waits = {fd_, POLLIN, 0};
    while (is_pipe_ && ::poll(&waits, 1, -1) < 0 && errno == EINTR) {
    }
  }

 private:
  static constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
  int fd_;
  bool is_pipe_ = false;
};

}  // namespace

std::string read_stream(const Path& path, std::uint64_t limit) {
  const Pipe pipe(path);  // stays open meanwhile: the writer has a reader
  pipe.await_writer();
  return read_file(path, limit);
}

std::string read_stdin(std::uint64_t limit) {
  std::string text;
  for (char bytes[1 << 16];;) {
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw EnvironmentError("E0606", "stdin cannot be read")
          .saw(errno == EBADF ? "it is closed" : std::strerror(errno))
          .advice("a terminal, a pipe or a file for stdin");
    text.append(bytes, static_cast<std::size_t>(count));
    if (text.size() > limit)
      throw DataError("E0602", "what stands in stdin is larger than anything that belongs there")
          .need("at most " + human_bytes(limit));
  }
}

}  // namespace aloft
