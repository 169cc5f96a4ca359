// What is compiled, to be read: the programs behind a compiled function (Compiled::programs), their
// Plan, graphs, precision decisions and pass times. Not part of <aloft/aloft.h>, which compiles
// faster without.
#pragma once

#include "frontend/programs.h"
