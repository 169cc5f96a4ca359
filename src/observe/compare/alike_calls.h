// Calls of two runs that do the same at the same place, and give as many elements: which of the one
// is which of the other.
#pragma once

#include <utility>
#include <vector>

#include "observe/compare/dump_file.h"

namespace aloft::compare {

using Calls = std::vector<const Entry*>;
using CallPairs = std::vector<std::pair<const Entry*, const Entry*>>;

// Pairs of the first run's calls and the second's, each in one at most. What two calls were fed
// says it best: a mistake in a call leaves that as it is. Where the dumps have no record of it,
// calls with the same numbers are the same, but for those that give what
// another of them gives (`s * z - z * 0.5` made in either order); of runs with other numbers (one
// has a call more, or has not kept one) those are, in order, that give nearly the same, and what is
// left is counted from them.
CallPairs pair_alike(Calls npu, Calls bench);

// Of pairs of calls that may all be one another: those that are apart, and what has no partner
// (`npu`, `bench`), are paired anew where they give the same crosswise: `s * z - z * 0.5` made in
// either order, a gate before or behind what it lets through.
void exchange_alike(CallPairs& pairs, const Calls& npu, const Calls& bench);

// Whether two calls, which hand on all that they take and compute nothing, hand on other values: a
// cast of positions and one of hidden states that are as many are not one call, if both run alone.
bool hand_on_others(const Entry& a, const Entry& b);

// How many elements a call gives: of its largest result; -1 where it has no record of one.
double given_elements(const Entry& call);

}  // namespace aloft::compare
