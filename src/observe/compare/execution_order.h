// In which order values came to be, of dumps that list calls as they ended, as they began, or by
// kinds.
#pragma once

#include <vector>

#include "observe/compare/pairing.h"

namespace aloft::compare {

// A moment of a call: it takes its inputs and parameters, or it gives its results. Gradients of a
// module's parameters are given with what its backward pass gives.
struct Moment {
  const EntryPair* entry = nullptr;
  bool gives = false;
};

// Forward, then backward, then what is added to parameters. A module takes before what lies in it
// does, and gives behind that; backward goes the way of forward from its end.
std::vector<Moment> moments_of(const Pairs& pairs);

}  // namespace aloft::compare
