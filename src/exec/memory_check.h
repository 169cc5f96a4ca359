// ALOFT_CHECK_MEMORY=1: holds a Plan to its word about memory while it runs. Arenas lie between
// guard pages and are closed while a kernel runs on copies of its own buffers (runtime/
// isolated_run.h); a buffer holds poison before its life and after it. Same bits as without.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "plan/plan.h"
#include "runtime/device.h"
#include "runtime/guarded_memory.h"
#include "runtime/isolated_run.h"

namespace aloft {

class MemoryCheck {
 public:
  // `plan` and `device` must outlive the check. UserError E0700 where the device's memory is not
  // the host's: what kernels do there the host cannot watch.
  MemoryCheck(const Plan& plan, Device& device);

  // Memory of exactly `bytes` for an arena, its end (or its start, where `bytes` is not a multiple
  // of 64) at a guard page. Belongs to the check.
  Buffer allocate(Arena arena, std::size_t bytes);

  // Before a program runs: everything that is not alive at its start becomes poison.
  void begin(const Program& program);
  // Runs one instruction. InternalError E9000 with instruction, buffer and offset.
  void run(const Program& program, int instruction, const Prepared& kernel, const RunArgs& args);

  // End of the highest buffer that an instruction was given so far, rounded to the alignment: what
  // the arena must reach.
  std::size_t reached(Arena arena) const;

 private:
  struct Watched {
    std::shared_ptr<GuardedMemory> memory;
    std::size_t reached = 0;
  };
  std::byte* home(const PlannedBuffer& b) const;
  void note(const Program& program, int instruction, int buffer);
  bool is_state(const PlannedBuffer& b) const;

  const Plan& plan_;
  Device& device_;
  std::map<Arena, Watched> places_;
};

}  // namespace aloft
