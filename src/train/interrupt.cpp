#include "train/interrupt.h"

#include <atomic>
#include <cstdint>
#include <ctime>

namespace aloft {
namespace {

// Any thread may be the one that a signal interrupts.
std::atomic<int> asking = 0;             // the signal that asked first
std::atomic<std::int64_t> asked_at = 0;  // nanoseconds of a clock that never stands at 0
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
int depth = 0;

// How long what follows the first signal may be the same wish once more: schedulers and wrappers
// send theirs to the process and to its group. A key is pressed twice on purpose; what reaches a
// process twice by itself comes within a few milliseconds.
constexpr std::int64_t kEchoOfKey = 50'000'000, kEchoOfOthers = 1'000'000'000;

// Nothing but system calls may be used here.
void on_signal(int signal) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t at = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  std::int64_t first = 0;
  if (asked_at.compare_exchange_strong(first, at)) {
    asking = signal;
    return;
  }
  if (at - first < (signal == SIGINT ? kEchoOfKey : kEchoOfOthers)) return;
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  ::sigaction(signal, &plain, nullptr);
  ::raise(signal);  // it ends the program when this handler returns
}

}  // namespace

InterruptScope::InterruptScope() : is_outermost_(depth++ == 0) {
  if (!is_outermost_) return;
  asking = 0;
  asked_at = 0;
  struct sigaction handler {};
  handler.sa_handler = on_signal;
  handler.sa_flags = SA_RESTART;  // no read or write that is under way fails
  for (int i = 0; i < 3; ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &handler, nullptr);
  }
}

InterruptScope::~InterruptScope() {
  --depth;
  if (!is_outermost_) return;
  for (int i = 0; i < 3; ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

bool InterruptScope::asked() { return asking != 0; }

void InterruptScope::leave_if_asked() {
  if (asked()) throw Interrupted(signal_name());
}

const char* InterruptScope::signal_name() {
  const int signal = asking;
  return signal == SIGINT    ? "SIGINT"
         : signal == SIGTERM ? "SIGTERM"
         : signal == SIGHUP  ? "SIGHUP"
                             : "";
}

}  // namespace aloft
