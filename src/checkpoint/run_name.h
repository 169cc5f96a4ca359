// The name by which a run's checkpoints know one another.
#pragma once

#include <string>

namespace aloft {

// A name that no other run has: hexadecimal, drawn.
std::string new_run_name();

}  // namespace aloft
