// Of a step that sums over micro-batches, the calls of the last one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "observe/compare/alike_calls.h"

namespace aloft::compare {

// Where a call is made, what it does and how many elements it gives: of the calls of two runs the
// same are looked for among those with the same.
using CallClass = std::tuple<std::string, std::string, double>;
using CallClasses = std::map<CallClass, std::pair<Calls, Calls>>;

// Where one run has the calls of all micro-batches and the other those of the last alone, leaves of
// the first those of the last: what the others give may be nearly the same, and is of other data.
// `parts`: how many micro-batches a step has. Which run has them all most classes say; one whose
// number of calls is no multiple of `parts` stays as it is.
void keep_last_micro_batch(CallClasses& classes, std::int64_t parts);

}  // namespace aloft::compare
