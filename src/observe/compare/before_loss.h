// What of two runs lies between the last call that agrees and a loss that does not.
#pragma once

#include <string>
#include <vector>

#include "observe/compare/difference.h"

namespace aloft::compare {

struct BeforeLoss {
  std::string text;    // of the sentence: "; what comes before it is the same: ..."; "" of nothing
  std::string module;  // that one run alone calls there and that was not compared; "" of none
  std::string kind;    // its class
  std::string behind;  // with it: the last call before it that agrees
};

// All that was compared in the forward pass agrees. That it is the same up to the loss is said only
// where nothing else lies between: what passes on a value that agrees, or multiplies one with a
// parameter that agrees, as a head does that the other run has within its loss.
BeforeLoss before_loss(const std::vector<Compared>& all, const DumpFile& npu, const DumpFile& bench,
                       const Pairs& pairs);

}  // namespace aloft::compare
