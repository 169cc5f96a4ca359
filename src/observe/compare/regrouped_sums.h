// Sums of the same terms that two runs add in another order: (x + a) + b beside (a + b) + x.
#pragma once

#include <set>

#include "observe/compare/alike_calls.h"

namespace aloft::compare {

struct RegroupedSums {
  // Calls that give the same sum, and take other parts of it.
  CallPairs pairs;
  // Of either run what is added on the way to such a sum, and no call of the other run adds.
  std::set<const Entry*> inner;
};

// Of calls that may be one another. What a sum is made of the dumps say: a call that takes what
// another one gives stands for the terms of that. A sum that is wrong is made of the same terms.
RegroupedSums regrouped_sums(const Calls& npu, const Calls& bench);

}  // namespace aloft::compare
