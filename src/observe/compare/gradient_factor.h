// By what the gradients of two runs differ because of their loss scales and micro-batches.
#pragma once

#include "observe/compare/pairing.h"

namespace aloft::compare {

// What brings the first run's gradients to the second's scale. A scale that one dump alone says may
// be the other run's, too, as of a loop beside its own dump by msprobe, which does not say it: it
// is taken for the other's where most gradients are nearer so than without one. What both say
// counts as it is said.
double gradient_factor(const Training& npu, const Training& bench, const Pairs& pairs);

}  // namespace aloft::compare
