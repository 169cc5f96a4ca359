// aloft probe run RUN --at N: recorded steps of a run, made again from the checkpoint before them,
// and what they hold.
#pragma once

#include "cli/probe_words.h"

namespace aloft::cli {

// Whether it is a run's directory that is named.
bool is_recorded_run(const ProbeWords& words);

// UserError E0700 for what is of recipes alone, E0811 where a dump lies in the folder; the errors
// of RecordedRun and of the files. Nothing is written into the run's directory.
ExitCode probe_recorded(const ProbeWords& words);

}  // namespace aloft::cli
