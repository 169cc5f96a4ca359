// Whether what a call gives is of the same class in two runs: floats, whole numbers, complex
// numbers.
#pragma once

#include "observe/compare/dump_file.h"

namespace aloft::compare {

// Of results alone: what a call takes, such as a mask, may be of floats in one run and not in the
// other. Truth values are whole numbers; types that are not known are of no class.
bool is_of_another_class(const Record& a, const Record& b);

}  // namespace aloft::compare
