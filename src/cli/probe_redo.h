// aloft probe redo: a recorded step once more, bit for bit.
#pragma once

#include "cli/verb.h"

namespace aloft::cli {

// Declares the options on `app`; the action repeats the step and says what differs.
Action probe_redo(CLI::App& app);

}  // namespace aloft::cli
