// SIGINT, SIGTERM and SIGHUP while training: the first asks for an orderly end, a second SIGINT or
// SIGTERM ends at once (a terminal that closes may send SIGHUP twice). A signal that was ignored
// when the program started, as nohup does, stays ignored.
#pragma once

#include <csignal>

namespace aloft {

class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  static bool asked();
  // "SIGTERM", of the signal that asked; "" before.
  static const char* signal_name();

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3];
};

}  // namespace aloft
