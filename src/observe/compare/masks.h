// Masks of attention, by their figures.
#pragma once

#include "observe/compare/dump_file.h"

namespace aloft::compare {

// Whether two records are of masks: norms of these overflow in some runs, and the rest of them is
// what can be compared.
bool are_masks_both(const Record& n, const Record& b);

}  // namespace aloft::compare
