// What values are called in a step that several programs make, or one of them several times: calls
// of a module, and of an op at a place, are numbered on over the step, as eager ones are and as
// msprobe numbers them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "types/variable.h"

namespace aloft {

class CallNumbers {
 public:
  // What is named from here on is of another run. `names`: all that it shows, without what stands
  // in front of a tap that shows no value.
  void next_run(const std::set<std::string>& names);
  // The name over the whole step of a call's value: "call:h.0.mlp#1.output" of the
  // "call:h.0.mlp#0.output" of the second run, "h.0.mlp/gelu#1" of its "h.0.mlp/gelu#0".
  std::string of_call(std::string_view name) const;
  // How many calls of the module the runs before have made: the number of this one's first.
  int calls_before(std::string_view module) const;
  // Whether this run calls it.
  bool calls(std::string_view module) const;

 private:
  std::map<std::string, int, std::less<>> before_, so_far_;  // by what is called
  std::set<std::string, std::less<>> called_;                // by this run
};

}  // namespace aloft
