// aloft probe acc-check: dumped calls made again in double.
#pragma once

#include "cli/verb.h"

namespace aloft::cli {

// Declares the options on `app`; the action checks the calls and writes the results.
Action probe_acc_check(CLI::App& app);

}  // namespace aloft::cli
