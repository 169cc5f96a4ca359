#include "cli/said_lines.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "cli/line_editor.h"

namespace aloft::cli {
namespace {

volatile std::sig_atomic_t is_stopped = 0;
int told[2] = {-1, -1};  // a pipe: a byte in it wakes whoever waits for a line, in any thread

void on_interrupt(int) {
  const int before = errno;
  is_stopped = 1;
  [[maybe_unused]] const ssize_t written = ::write(told[1], "", 1);  // full: it wakes already
  errno = before;
}

[[noreturn]] void refuse() {
  throw EnvironmentError("E0606", "the system does not give what is said to the model")
      .at("stdin")
      .saw(errno == EBADF ? "it is closed" : std::strerror(errno))
      .advice("a terminal, a pipe or a file for stdin");
}

// As they come.
class PlainLines : public SaidLines {
 public:
  std::optional<std::string> next(bool& interrupted) override {
    interrupted = false;
    for (;;) {
      if (const std::size_t end = held_.find('\n', looked_); end != std::string::npos)
        return taken(end);
      looked_ = held_.size();
      char bytes[1 << 16];
      const std::optional<std::size_t> count = read_said(bytes, sizeof bytes);
      if (!count) {
        held_.clear();
        looked_ = 0;
        interrupted = true;
        return "";
      }
      if (*count == 0) {  // the last line may have no end
        if (held_.empty()) return std::nullopt;
        return taken(held_.size());
      }
      held_.append(bytes, *count);
    }
  }

 private:
  // The line that ends at a byte.
  std::string taken(std::size_t end) {
    std::string line = held_.substr(0, end);
    held_.erase(0, end + 1);
    looked_ = 0;
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }

  std::string held_;
  std::size_t looked_ = 0;  // bytes of it that hold no end of a line
};

// Where to show a line that is edited: results may go to a file, and talk to another.
std::optional<int> terminal_to_write() {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
    if (::isatty(fd) == 1) return fd;
  const int mode = ::fcntl(STDIN_FILENO, F_GETFL);
  if (mode >= 0 && (mode & O_ACCMODE) == O_RDWR) return STDIN_FILENO;
  return std::nullopt;
}

}  // namespace

StopKey::StopKey() {
  if (::pipe2(told, O_CLOEXEC | O_NONBLOCK) != 0)
    throw EnvironmentError("E0606", "a pipe cannot be opened").saw(std::strerror(errno));
  struct sigaction handler {};
  handler.sa_handler = on_interrupt;
  handler.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler != SIG_IGN) ::sigaction(SIGINT, &handler, nullptr);
}

StopKey::~StopKey() {
  ::sigaction(SIGINT, &before_, nullptr);
  for (int& end : told) ::close(std::exchange(end, -1));
}

bool StopKey::take() {
  char bytes[64];
  while (::read(told[0], bytes, sizeof bytes) > 0) {
  }
  const bool was = is_stopped != 0;
  is_stopped = 0;
  return was;
}

bool StopKey::is_pressed() { return is_stopped != 0; }

std::optional<std::size_t> read_said(char* bytes, std::size_t most) {
  for (;;) {
    pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {told[0], POLLIN, 0}};
    if (::poll(waits, std::size(waits), -1) < 0) {
      if (errno == EINTR) continue;  // Ctrl-C has written to the pipe
      refuse();
    }
    if (StopKey::take()) return std::nullopt;
    if (waits[0].revents == 0) continue;
    const ssize_t count = ::read(STDIN_FILENO, bytes, most);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) refuse();
    return static_cast<std::size_t>(count);
  }
}

std::unique_ptr<SaidLines> said_lines() {
  if (::isatty(STDIN_FILENO) == 1)
    if (const std::optional<int> shown = terminal_to_write()) return edited_lines(*shown);
  return std::make_unique<PlainLines>();
}

}  // namespace aloft::cli
