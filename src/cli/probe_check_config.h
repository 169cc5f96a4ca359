// aloft probe check-config: two runs before they are made, and in what they differ.
#pragma once

#include "cli/verb.h"

namespace aloft::cli {

// Declares the options on `app`; the action reads both sides and prints a table.
Action probe_check_config(CLI::App& app);

}  // namespace aloft::cli
