#include "base/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "base/log.h"
#include "base/terminal.h"

namespace aloft {
namespace {

// Any thread may be the one that a signal interrupts.
std::atomic<int> asking = 0;             // the signal that asked first
std::atomic<std::int64_t> asked_at = 0;  // nanoseconds of a clock that never stands at 0
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
std::atomic<bool> is_save_asked = false;
int depth = 0;
const char* what_is_left = "";

const char* name_of(int signal) {
  return signal == SIGINT    ? "SIGINT"
         : signal == SIGTERM ? "SIGTERM"
         : signal == SIGHUP  ? "SIGHUP"
         : signal == SIGUSR1 ? "SIGUSR1"
                             : "";
}

// How long what follows the first signal may be the same wish once more: schedulers and wrappers
// send theirs to the process and to its group. A key is pressed twice on purpose; what reaches a
// process twice by itself comes within a few milliseconds.
constexpr std::int64_t kEchoOfKey = 50'000'000, kEchoOfOthers = 1'000'000'000;

std::atomic<std::int64_t> finished_first = 0;  // the step
std::atomic<bool> is_on_terminal = false;
std::atomic<bool> is_answered = false;  // whichever level talk is heard at

// Text in a buffer of its own, written at once.
class Notice {
 public:
  void add(const char* text) {
    while (*text != 0 && size_ < sizeof text_) text_[size_++] = *text++;
  }
  void add(std::int64_t number) {
    char digits[24];
    int n = 0;
    do digits[n++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    while (n > 0 && size_ < sizeof text_) text_[size_++] = digits[--n];
  }
  void write() const {
    // Talk may be lost.
    if (::write(STDERR_FILENO, text_, size_) < 0) return;
  }

 private:
  char text_[256];
  std::size_t size_ = 0;
};

// A step may last for minutes: whoever asks is told at once that he was heard.
void say_heard(int signal) {
  if (log_level() < LogLevel::Info && !is_answered) return;
  const int error = errno;
  Notice notice;
  if (is_on_terminal) notice.add("\n");  // behind a line that is drawn in place
  notice.add(name_of(signal));
  notice.add(": ");
  const std::int64_t step = finished_first;
  if (signal == SIGUSR1) {
    notice.add("saving behind the step in hand, and going on\n");
  } else if (step > 0) {
    notice.add("finishing step ");
    notice.add(step);
    notice.add(", then saving; ");
    notice.add(signal == SIGINT ? "Ctrl-C again" : "another one");
    notice.add(" ends now, without saving\n");
  } else {
    notice.add("coming to an end\n");
  }
  notice.write();
  errno = error;
}

// Nothing but system calls may be used here.
void on_signal(int signal) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t at = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  std::int64_t first = 0;
  if (asked_at.compare_exchange_strong(first, at)) {
    asking = signal;
    say_heard(signal);
    return;
  }
  if (at - first < (signal == SIGINT ? kEchoOfKey : kEchoOfOthers)) return;
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  ::sigaction(signal, &plain, nullptr);
  ::raise(signal);  // it ends the program when this handler returns
}

void on_save_signal(int signal) {
  if (!is_save_asked.exchange(true)) say_heard(signal);
}

}  // namespace

InterruptScope::InterruptScope(const char* left) : is_outermost_(depth++ == 0) {
  if (!is_outermost_) return;
  what_is_left = left;
  asking = 0;
  asked_at = 0;
  is_save_asked = false;
  finished_first = 0;
  is_answered = false;
  is_on_terminal = is_terminal(Output::Err);
  struct sigaction handler {};
  handler.sa_flags = SA_RESTART;  // no read or write that is under way fails
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    handler.sa_handler = kSignals[i] == SIGUSR1 ? on_save_signal : on_signal;
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &handler, nullptr);
  }
}

InterruptScope::~InterruptScope() {
  --depth;
  if (!is_outermost_) return;
  for (std::size_t i = 0; i < std::size(kSignals); ++i)
    ::sigaction(kSignals[i], &before_[i], nullptr);
}

void InterruptScope::finishes(std::int64_t step) { finished_first = step; }

void InterruptScope::answer() { is_answered = true; }

bool InterruptScope::asked() { return asking != 0; }

void InterruptScope::leave_if_asked() {
  if (asked()) throw Interrupted(signal_name(), what_is_left);
}

bool InterruptScope::take_save_wish() { return is_save_asked.exchange(false); }

const char* InterruptScope::signal_name() { return name_of(asking); }

}  // namespace aloft
