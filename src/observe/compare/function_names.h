// What a function of a dump does, whatever a framework calls it.
#pragma once

#include <string>

#include "observe/compare/dump_file.h"

namespace aloft::compare {

// One name for all that do the same, that of an op: "add" of "__radd__", "linear" of "addmm".
std::string plain_function(const Entry& call);

// Whether its two operands may stand in either order: a sum, a product of elements.
bool commutes(const Entry& call);

// Whether it moves values, or their types, and computes nothing.
bool moves_values(const Entry& call);

}  // namespace aloft::compare
