// Functions that one of two runs alone calls, where the two part.
#pragma once

#include <string>
#include <vector>

#include "observe/compare/difference.h"

namespace aloft::compare {

struct LoneFunction {
  std::string call;      // "Functional.gelu.0.forward"
  std::string function;  // "gelu"
  std::string module;    // that calls it, in its own run; "" of none, or where the dump has none
  bool is_in_first = false;
};

// Of the forward pass, what only one run computes on the way to `first`: before a function that
// takes something else, behind the last that agrees; of a module within it. None of what moves
// values alone (reshape, transpose, cast), which programs have at will, nor of what the other run
// calls there, too.
std::vector<LoneFunction> lone_functions(const std::vector<Compared>& all, const Compared& first,
                                         const DumpFile& npu, const DumpFile& bench);

// "; before it h.0.mlp calls gelu in the first run alone"; "" of none.
std::string function_remark(const std::vector<LoneFunction>& functions, bool is_within);

}  // namespace aloft::compare
