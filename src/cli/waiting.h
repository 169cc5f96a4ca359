// How long the threads of OpenMP's pool spin before they sleep.
#pragma once

#include <string>

namespace aloft::cli {

// Starts the program once more with a short spin in its environment (GOMP_SPINCOUNT), unless the
// environment already says how threads are to wait; then it returns. libgomp reads the variable
// before main and offers no call for it. Where the program cannot be started again it goes on as
// it is: only speed depends on this. docs/decisions/0015-short-spin.md says what it buys.
void wait_briefly(char** argv);

// What the environment says of waiting, in words: "spin 1000 times, then sleep".
std::string waiting_words();

}  // namespace aloft::cli
