#include "base/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/error.h"

namespace aloft {
namespace {

// The reason of the first loss: later calls have forgotten it.
int lost = 0;

void note_loss() {
  if (lost == 0) lost = errno != 0 ? errno : EIO;
}

const char* way_out() {
  if (lost == EPIPE) return "a reader that reads to the end: what took stdout has left";
  if (lost == EBADF) return "open stdout, or > /dev/null where nobody wants the results";
  return "free space where stdout goes, or send it to another place";
}

[[noreturn]] void results_lost() {
  throw EnvironmentError("E0607", "the results cannot be written to the output")
      .saw(std::generic_category().message(lost))
      .advice(way_out());
}

}  // namespace

void print_result(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_loss();
  if (lost != 0) results_lost();
}

void flush_results() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) note_loss();
  if (lost != 0) results_lost();
}

// Results that were printed before stand before it, also where both go to one file.
void print_talk(std::string_view text) noexcept {
  errno = 0;
  if (std::fflush(stdout) != 0) note_loss();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void open_standard_descriptors() noexcept {
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_RDWR};  // as closed ones, but for talk
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", kModes[fd]));
}

}  // namespace aloft
