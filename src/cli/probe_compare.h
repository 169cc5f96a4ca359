// aloft probe compare: two dumps, and where they part.
#pragma once

#include "cli/verb.h"

namespace aloft::cli {

// Declares the options on `app`; the action reads both dumps and writes the results.
Action probe_compare(CLI::App& app);

}  // namespace aloft::cli
