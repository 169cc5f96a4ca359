// Gradients of which msprobe writes another thing than other dumps of the same program.
#pragma once

#include "observe/compare/pairing.h"

namespace aloft::compare {

// Whether a value of a call of the backward pass is one thing in msprobe's dump and another one in
// the dump beside it, so that the two say nothing of one another:
// - of a function msprobe has the gradients of the last step in it, such as the view that makes
//   the result of `linear` three-dimensional of a matrix; others have those of its arguments;
// - of a tensor that a module takes several times, as attention its queries, keys and values,
//   msprobe has a gradient for each place, others one, their sum.
// `forward`: the same call in the forward pass; null where it is not known.
bool are_other_gradients(const EntryPair& call, const EntryPair* forward, const RecordPair& r);

// Whether msprobe's gradient of a function is the one that reaches it, as of one that works in
// place: where that is not what the other run has, it may be that of such a last step.
bool hands_on_gradient(const EntryPair& call, const RecordPair& r);

}  // namespace aloft::compare
