// Pass tests as data. A file NAME.graph holds cases of the pass NAME, one behind the other:
//
//   case what-it-shows
//   bind B=3                 a length for each symbol
//   ids targets 0 5          an integer input holds numbers from 0 to 4 (default: 0 and 1)
//   uniform x 0.5 2          a floating-point input holds numbers from there (default: normal)
//   without softmax gelu     these ops have no kernel (for expand-bodies)
//   arithmetic changes       results are compared within a tolerance
//   graph before {
//     ...
//   }
//   expect
//   graph before {
//     ...
//   }
//
// `pass simplify cse dce` runs those instead of the file's own. `expect the same` stands for a
// graph that the pass leaves alone, `expect error E0311 word` for one that it refuses. Lines that
// begin with '#' are prose. With ALOFT_UPDATE=1 the tests first rewrite what is expected, and
// graphs in the way in which they print.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "ops/evaluate.h"

namespace aloft::testing {

struct PassCase {
  std::string name;
  int line = 0;
  std::vector<std::string> passes;
  SymbolValues lengths;
  std::map<std::string, std::pair<double, double>> ids, uniform;  // input -> [from, to)
  std::vector<std::string> without;
  bool arithmetic_changes = false;
  std::string head;      // prose and options, for rewriting the file
  std::string graph;     // the input graph's text
  std::string expected;  // text, or empty
  bool expects_same = false;
  std::string expected_error;  // a code, or empty
};

// std::runtime_error with file and line where the file is not as described.
std::vector<PassCase> read_cases(const Path& file);
// The text of a file with these cases.
std::string print_cases(const std::vector<PassCase>& cases);

}  // namespace aloft::testing
