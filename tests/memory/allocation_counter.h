// Counts every allocation and every lock of the process by whose code asked for it. The program
// that links allocation_counter.cpp has its malloc, operator new and pthread_mutex_lock replaced.
#pragma once

namespace aloft::memory {

struct Counts {
  long ours = 0;     // allocations of this program and of what it calls on its own behalf
  long library = 0;  // allocations inside oneDNN and the OpenMP runtime
  long locks = 0;    // mutexes that this program's own code takes

  friend Counts operator-(const Counts& a, const Counts& b) {
    return {a.ours - b.ours, a.library - b.library, a.locks - b.locks};
  }
};

// False where a sanitizer owns the allocator: nothing is counted then.
bool is_counting();
Counts counts_so_far();

}  // namespace aloft::memory
