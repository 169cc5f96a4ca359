// A Plan in a screenful: what it holds, and what makes the most of it.
#pragma once

#include <string>

#include "plan/plan.h"

namespace aloft {

// print() of plan.h without instructions and lifetimes: arenas, peak with the tensors that make it.
std::string print_summary(const Plan& plan);

}  // namespace aloft
