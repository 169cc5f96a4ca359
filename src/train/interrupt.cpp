#include "train/interrupt.h"

#include <initializer_list>

namespace aloft {
namespace {

volatile std::sig_atomic_t asking = 0;  // the signal that asked first
int depth = 0;

void on_signal(int signal) {
  if (asking == 0) asking = signal;
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (const int next : {SIGINT, SIGTERM}) ::sigaction(next, &plain, nullptr);
}

}  // namespace

InterruptScope::InterruptScope() : is_outermost_(depth++ == 0) {
  if (!is_outermost_) return;
  asking = 0;
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
  return asking == SIGINT    ? "SIGINT"
         : asking == SIGTERM ? "SIGTERM"
         : asking == SIGHUP  ? "SIGHUP"
                             : "";
}

}  // namespace aloft
