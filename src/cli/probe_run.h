// aloft probe run: steps of a recipe, recorded steps of a run, or a pass of a saved model, and what
// they hold.
#pragma once

#include "cli/verb.h"

namespace aloft::cli {

// Declares the options on `app`; the action makes the steps, writes their folders and says where.
Action probe_run(CLI::App& app);

}  // namespace aloft::cli
