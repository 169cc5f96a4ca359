// Modules that one of two runs alone calls.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "observe/compare/difference.h"

namespace aloft::compare {

struct LoneModule {
  std::string path, kind;
  bool is_in_first = false;
  bool has_parameters = false;     // of its own, or in it
  bool is_of_a_row = false;        // the other run has others of its list, such as h.0 of h.1
  std::size_t tensors = 0;         // that it and what lies in it take and give, in both passes
  const Entry* forward = nullptr;  // its call
};

// The outermost ones, of which nothing has a partner, in the order of each run's calls: what a
// program has around the same calls, such as one that calls a model's body, is none.
std::vector<LoneModule> lone_modules(const DumpFile& npu, const DumpFile& bench,
                                     const Pairs& pairs);

// Those with parameters between the last call that agrees and the first that does not, and those of
// a row: "; h.1 (Block) is in the second run alone"; "" of none.
std::string module_remark(const std::vector<LoneModule>& lone, const std::vector<Compared>& all,
                          const Compared& first);

// The names of an entry, which are several where modules are taken as one.
std::vector<std::string_view> names_in(const Entry& e);

}  // namespace aloft::compare
