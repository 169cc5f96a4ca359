// What the storing of a parameter takes from its update.
#pragma once

#include "observe/compare/pairing.h"

namespace aloft::compare {

// An update is the difference of two parameters, each of which is rounded to its type: where a step
// moves them by some units in the last place, these are off by a good part of it. Relative to the
// update `r`, for both runs; 0 where the module's forward entry, which may be null, does not have
// the parameter. Types that are coarser than f32 lose updates that way, which is a mistake of the
// program: nothing is allowed for them.
double stored_update(const RecordPair& r, const EntryPair* forward);

}  // namespace aloft::compare
