// SIGINT while training: the first asks for an orderly end, the second ends at once.
#pragma once

namespace aloft {

class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  static bool asked();

 private:
  void (*before_)(int);
};

}  // namespace aloft
