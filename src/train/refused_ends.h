// Ends of a run that are no success, in words.
#pragma once

#include <cstdint>
#include <string>

namespace aloft {

// DivergedError E0834: train.on_nonfinite is stop, and the numbers of a step are not finite.
[[noreturn]] void refuse_to_go_on(std::int64_t step, const std::string& reason);

// DivergedError E0822: the state at the end has a problem. `kept`: the newest healthy checkpoint;
// "": none.
[[noreturn]] void refuse_to_succeed(const std::string& problem, const std::string& kept);

}  // namespace aloft
