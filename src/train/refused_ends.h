// Ends of a run that are no success, in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "recipe/recipe.h"
#include "run/listener.h"

namespace aloft {

// DivergedError E0834: train.on_nonfinite is stop, and the numbers of a step of the run in that
// folder are not finite.
[[noreturn]] void refuse_to_go_on(std::int64_t step, const std::string& reason, const Path& run);

// DivergedError E0822: the state behind `step` at the end has a problem. `kept`: the newest healthy
// checkpoint; "": none. `bad_steps`: how many up to it had no finite numbers.
[[noreturn]] void refuse_to_succeed(const std::string& problem, const std::string& kept,
                                    const Path& run, std::int64_t step, std::int64_t bad_steps);

// DivergedError E0884: steps that were made to be looked at have the problem; "": none.
void need_healthy_steps(const std::string& problem);

// Warns that there is nothing to do for a run that stands behind `step` steps: it has made all, or
// `stop` has ended it; and says what would have it go on.
void say_nothing_to_do(std::int64_t step, const TrainSection& train,
                       const std::optional<Stop>& stop);

}  // namespace aloft
