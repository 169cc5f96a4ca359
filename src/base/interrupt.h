// SIGINT, SIGTERM and SIGHUP while training: the first asks for an orderly end. Another SIGINT, or
// another SIGTERM or SIGHUP a second later at least, ends at once; what comes sooner is the first
// one once more, as schedulers and wrappers send it. A signal that was ignored when the program
// started, as nohup does, stays ignored throughout. SIGUSR1 asks for a checkpoint, and ends
// nothing.
#pragma once

#include <csignal>
#include <cstdint>
#include <exception>
#include <iterator>
#include <string>

namespace aloft {

// Thrown where a signal has asked for the end and there is nothing to save: exit Interrupted.
class Interrupted : public std::exception {
 public:
  Interrupted(const char* signal, const char* left)
      : text_("interrupted by " + std::string(signal) + ": " + left) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// Scopes may be nested: the outermost one begins and ends it, and says what is left where it ends
// before its time.
class InterruptScope {
 public:
  explicit InterruptScope(const char* left = "nothing was begun, nothing is left");
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  static bool asked();
  // The step that is finished before the end, which the first signal then says on stderr (and at
  // which level talk is heard); 0: none is.
  static void finishes(std::int64_t step);
  // From here on the first signal is answered on stderr at whichever level talk is heard: somebody
  // looks at a line that shows how far it is.
  static void answer();
  // Throws Interrupted where it has been asked.
  static void leave_if_asked();
  // "SIGTERM", of the signal that asked; "" before.
  static const char* signal_name();
  // Whether a checkpoint was asked for since the last call.
  static bool take_save_wish();

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  const bool is_outermost_;
  struct sigaction before_[std::size(kSignals)];
};

}  // namespace aloft
