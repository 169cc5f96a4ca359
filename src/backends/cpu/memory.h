// Aligned memory of the host.
#pragma once

#include <cstddef>
#include <memory>

namespace aloft::cpu {

// How a block goes back.
struct GiveBack {
  std::size_t mapped = 0;  // bytes of the system's pages; 0: it came from the C library
  void operator()(void* block) const;
};
using HostMemory = std::unique_ptr<void, GiveBack>;

// Uninitialised, 64-byte aligned; large blocks lie on huge pages where the system offers them.
// EnvironmentError E0401 where there is not enough.
HostMemory allocate_aligned(std::size_t bytes);

// The same, all zero bytes. Large blocks are the system's own zero pages: nothing is written before
// their first use, and they go back to the system when they are freed.
HostMemory allocate_zeroed(std::size_t bytes);

// What was freed and the C library keeps goes back to the system.
void release_unused();

}  // namespace aloft::cpu
