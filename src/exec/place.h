// What programs share that work on the same variables.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

namespace aloft {

// Which of the variables placed in an executor's memory are being written, a bit each. It grows
// under hold_places(). The executors whose programs count on the variables staying there own it;
// a block of memory (Block::place) knows whose it is.
struct Place {
  std::map<const void*, std::size_t> bits;  // by a variable's address
  std::deque<std::atomic<std::uint64_t>> writing;
};

}  // namespace aloft
