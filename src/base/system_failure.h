// What the standard library throws where the system refuses something, as an Error.
#pragma once

#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace aloft {

// A path that cannot be used (no rights, a circle of links, a name too long): E0606.
EnvironmentError system_error(const std::filesystem::filesystem_error& e);
// A thread that is not made: E0406; what else has a number of the system: E0606.
EnvironmentError system_error(const std::system_error& e);

}  // namespace aloft
