// Gradients of parameters that a dump tells more than once a step: sums so far.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string_view>

#include "observe/compare/dump_file.h"

namespace aloft::compare {

// msprobe writes what has been summed up to there behind each backward pass, other dumps what the
// step has at its end: the last of the one is the same as the only one of the other.
class RunningSums {
 public:
  struct OfModule {
    std::size_t count = 0;
    const Entry* last = nullptr;
    // Of each parameter its last gradient, be it in an earlier entry: a later pass may not reach
    // it.
    const Entry* whole = nullptr;
  };

  // `made` keeps the entries that are put together. The dump outlives the result.
  RunningSums(const DumpFile& dump, std::deque<Entry>& made);
  // Of a module's path; null where it has none.
  const OfModule* of(std::string_view path) const;

 private:
  std::map<std::string_view, OfModule> modules_;
};

}  // namespace aloft::compare
