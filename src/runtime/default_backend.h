// The back end of a program that does not choose one. Set once, at start, by whoever knows the
// concrete back ends (the command line, include/aloft/aloft.h).
#pragma once

#include "runtime/kernel_cache.h"

namespace aloft {

void set_default_backend(const Backend& backend);
// EnvironmentError E0403 where none was set.
const Backend& default_backend();
// The prepared kernels of the default back end, shared by eager calls and compiled programs.
KernelCache& default_kernels();

}  // namespace aloft
