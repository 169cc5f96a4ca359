// `aloft bench generate`: how long a saved model takes to open, to read a prompt, and for a token.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/verb.h"

namespace aloft::cli {

// Gives the subcommand its options. `start`: when the program started (base/clock.h).
Action bench_generate(CLI::App& generate, double start);

}  // namespace aloft::cli
