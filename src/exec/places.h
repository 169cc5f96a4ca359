// Where variables lie: one lock for the process, held by whoever moves variables into a program's
// memory (the program's first call) and by whoever asks where one lies, to read it. Runs of
// programs do not take it: what a program works on stays where it is as long as the program lives.
#pragma once

#include <mutex>

namespace aloft {

[[nodiscard]] inline std::unique_lock<std::mutex> hold_places() {
  static std::mutex places;
  return std::unique_lock<std::mutex>(places);
}

}  // namespace aloft
