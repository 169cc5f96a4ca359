// How far two records are apart by their figures, for who looks which of them belong together.
#pragma once

#include "observe/compare/dump_file.h"

namespace aloft::compare {

// Whether it is a tensor of floats whose norm is known.
bool has_float_norm(const Record& r);

// The size of their difference, relative; 1 where there is nothing in both to compare.
double apart(const Record& a, const Record& b);

// Whether one is the other, but for the units that a cast between their types takes.
bool is_cast_of(const Record& a, const Record& b);

}  // namespace aloft::compare
