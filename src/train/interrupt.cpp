#include "train/interrupt.h"

#include <csignal>

namespace aloft {
namespace {
volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}
}  // namespace

InterruptScope::InterruptScope() {
  interrupted = 0;
  before_ = std::signal(SIGINT, on_interrupt);
}
InterruptScope::~InterruptScope() { std::signal(SIGINT, before_); }
bool InterruptScope::asked() { return interrupted != 0; }

}  // namespace aloft
