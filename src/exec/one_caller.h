// A program's inputs, results and arenas are one memory: one caller works with it at a time.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "base/error.h"

namespace aloft {

class OneCaller {
 public:
  // While alive, a second caller (another thread, or the program itself) is refused: UserError
  // E0330.
  class Entered {
   public:
    Entered(OneCaller& door, std::string_view program) : door_(door) {
      if (door_.inside_.exchange(true, std::memory_order_acquire)) refuse(program);
    }
    ~Entered() { door_.inside_.store(false, std::memory_order_release); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    OneCaller& door_;
  };

 private:
  [[noreturn]] static void refuse(std::string_view program) {
    throw UserError("E0330", "the program '" + std::string(program) + "' is running already")
        .saw("a call from another thread, or from inside the program, before the last one returned")
        .need("one caller at a time: a program's inputs and results are one memory")
        .advice("compile a program for each thread, or take turns with a mutex");
  }
  std::atomic<bool> inside_{false};
};

}  // namespace aloft
