// msprobe's verdicts on a call: pass, warning, error, by rules that compare what it gives with what
// it takes.
#pragma once

#include <cstddef>

#include "observe/compare/msprobe_table.h"

namespace aloft::compare {

// Fills in Result and Err_message of the rows from `begin` to the end, which are one call's.
void give_verdicts(Table& table, std::size_t begin, Mode mode);

}  // namespace aloft::compare
