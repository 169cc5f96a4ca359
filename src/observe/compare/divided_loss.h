// A loss that one loop tells divided by the number of its micro-batches, as backward() takes it.
#pragma once

#include <string>
#include <vector>

#include "observe/compare/difference.h"
#include "observe/compare/training.h"

namespace aloft::compare {

// Where the losses differ by the number of micro-batches alone, and the first gradients agree, it
// is what the two loops tell that differs, and not what they compute: the loss is taken out of
// `loop`, and the result says so. "" where it is not so. The number is that of either dump; where
// neither says one, a whole number that is the same in every step. `quotient`: of the losses of
// the steps before, the first run's by the second's; 0: there was none.
std::string take_divided_loss(const Training& npu, const Training& bench,
                              const std::vector<Compared>& all,
                              std::vector<TrainingDifference>& loop, double& quotient);

}  // namespace aloft::compare
