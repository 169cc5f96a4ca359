// How much memory there is: of the machine, of the container that this process lives in, and what
// `ulimit -v` leaves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"

namespace aloft {

struct MachineMemory {
  std::uint64_t total = 0;      // bytes, swap included; what a process can have at most
  std::uint64_t available = 0;  // bytes that are free now, or can be freed
  std::string limited_by;       // "the machine", "the container's limit (cgroup)"
};

// What the system has: reads /proc and the control groups, versions 1 and 2, below `root`. Zeros
// where nothing is known.
MachineMemory machine_memory(const Path& root = "/");
// What this process can have: the least of that and of its own limits (`ulimit -v`, `ulimit -d`).
MachineMemory process_memory();

// EnvironmentError E0401 where `bytes` for `what` are more than there can be, with both numbers and
// `advice`.
void need_memory(double bytes, std::string_view what, std::string_view advice);
// A warning where they are more than is free now.
void warn_of_memory(double bytes, std::string_view what, std::string_view advice);

}  // namespace aloft
