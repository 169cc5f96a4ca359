// What words of probe.list and probe.scope that are no patterns of taps mean: names of entries as
// dump.json has them, or parts of these, and what msprobe's lists have for them, of PyTorch's
// functions ("Functional.linear.0.forward", "addmm").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "observe/probe/dump.h"

namespace aloft {

// Whether the word is a part of the name, or of what msprobe calls the same function; `is_whole`:
// the name itself. `name`: of an entry, or of a tensor in it.
bool names_entry(std::string_view word, const std::string& name, bool is_whole = false);

// Whether a value stands in a call of a module that the word names, however deep, as msprobe takes
// lists at level mix.
bool names_module_around(std::string_view word, const probe::Dump& dump,
                         const probe::LookedAt& value);

// Patterns of taps of all ops whose entries the word may name, forward and backward; some may mean
// nothing in a program. Empty: it names none.
std::vector<std::string> taps_of_functions(std::string_view word);

}  // namespace aloft
