// How the program ends when something went wrong: an exit status of base/error.h and a message on
// stderr, whatever was thrown and whoever gives up.
#pragma once

#include <exception>

#include "base/error.h"

namespace aloft::cli {

// Prints what was thrown; its exit status. Errors of the system that no part of the program has
// put into words (paths that cannot be used, threads that cannot be made, memory) are Environment.
ExitCode report_failure(const std::exception_ptr& thrown) noexcept;

// From now on the program ends with an exit status, not a signal, where an exception reaches nobody
// (a parallel region) or a file would grow beyond `ulimit -f`; and where a library calls exit() by
// itself, as OpenMP does when it gets no thread, the status is Environment. To be called once.
void watch_over_the_end();
// The program is about to end by itself.
void expect_the_end() noexcept;

}  // namespace aloft::cli
