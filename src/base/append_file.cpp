#include "base/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace aloft {
namespace {

constexpr std::size_t kHeld = 8192;  // bytes kept back at most
constexpr double kSeconds = 1;       // and for how long: readers follow a run of slow steps

[[noreturn]] void fail(const Path& path, std::string_view doing, int error) {
  EnvironmentError e("E0603", "cannot write a file");
  e.add_line("file", path.string());
  e.add_line("saw", fmt::format("{}: {}", doing, std::generic_category().message(error)));
  if (error == ENOSPC || error == EDQUOT) e.add_line("try", "free space on this disk");
  throw e;
}

}  // namespace

AppendFile::AppendFile(Path path) : path_(std::move(path)), flushed_(monotonic_seconds()) {
  // A pipe that nobody reads is refused; to open it would wait for a reader for ever.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC;
  do fd_ = ::open(path_.c_str(), kFlags, 0666);
  while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) fail(path_, "open", errno);
  ::fcntl(fd_, F_SETFL, O_APPEND);  // from here on it waits for one that is slow
}

AppendFile::~AppendFile() {
  try {
    flush();
  } catch (const Error&) {  // said above
  }
  ::close(fd_);
}

void AppendFile::write(std::string_view bytes) {
  held_ += bytes;
  if (held_.size() >= kHeld || monotonic_seconds() - flushed_ >= kSeconds) flush();
}

void AppendFile::flush() {
  flushed_ = monotonic_seconds();
  std::size_t put = 0;
  int error = 0;
  while (put < held_.size() && error == 0) {
    const ssize_t n = ::write(fd_, held_.data() + put, held_.size() - put);
    if (n >= 0)
      put += static_cast<std::size_t>(n);
    else if (errno != EINTR)
      error = errno;
  }
  held_.erase(0, put);
  if (error != 0) fail(path_, "write", error);
}

void AppendFile::sync() {
  flush();
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != ENOTSUP) fail(path_, "fsync", errno);
}

}  // namespace aloft
