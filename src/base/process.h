// What this process has used so far, and who it is among others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace aloft {

// More threads than this are a mistake on any machine; OpenMP keeps them on its caller's stack.
inline constexpr int kMostThreads = 1024;

// Largest resident size of this process so far, in bytes.
std::uint64_t peak_rss_bytes();

// This thread is given the processor behind others, where the system lets it.
void lower_priority_of_thread();

// A process so that it is not mistaken for another of the same number, here or elsewhere.
struct ProcessName {
  std::string host;         // name of the machine
  std::string boot;         // the kernel's id of this start of the machine; "" where it has none
  std::int64_t pid = 0;     // its number
  std::uint64_t start = 0;  // when it started, in clock ticks since the machine did; 0: unknown
  friend bool operator==(const ProcessName&, const ProcessName&) = default;
};

ProcessName this_process();

// When the process of this number started, in clock ticks since the machine did; nothing where
// there is none.
std::optional<std::uint64_t> start_of_process(std::int64_t pid);

// Whether a process of this number runs on this machine (as far as this container sees it).
bool is_running(std::int64_t pid);

}  // namespace aloft
