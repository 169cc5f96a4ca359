// What the record of a run says of the error that ended it.
#pragma once

#include <exception>

#include "base/error.h"

namespace aloft {

// Errors of Aloft as they are, those of the system as base/system_failure.h reads them, memory that
// is not there as E0401. Anything else is our mistake (E9000), unless a listener of the program has
// thrown it: E0828.
Error recorded_error(const std::exception_ptr& thrown, bool of_a_listener);

}  // namespace aloft
