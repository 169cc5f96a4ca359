// aloft explain kernels: a row for every kind of call of a program, or for every call.
#pragma once

#include <string>

#include "frontend/programs.h"

namespace aloft::cli {

// Which kernel runs each call, by which of its ways, what the call stands for, which kernels
// refused it and why, and what the fusing passes said of it. Calls that differ in their place alone
// are one row, which shows the first; with `each` every call has its own.
void explain_kernels(const Programs& programs, const std::string& program, bool each, bool as_json);

}  // namespace aloft::cli
