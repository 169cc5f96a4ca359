// Kernel calls as benchmarks: GB/s over the bytes that a call must move (each operand once), and
// the share of the machine's stream rate measured in the same run. Operands that fit the caches
// pass 1.
#pragma once

#include <string>
#include <vector>

#include "types/call.h"

namespace aloft::bench {

struct Call {
  std::string op;
  Attrs attrs;
  std::vector<TensorType> in;
  std::int64_t ids_below = 1;  // integers are drawn from [0, ids_below)
  std::string note;            // tells calls of one op and type apart
};

Attrs attrs(std::initializer_list<std::pair<Name, AttrValue>> list);

// Registers the calls and runs what the command line asks for.
int run_calls(int argc, char** argv, const std::vector<Call>& calls);

}  // namespace aloft::bench
