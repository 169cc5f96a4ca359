// What a step is asked for by [probe]: taps, of a compiled program or of eager calls.
#pragma once

#include "frontend/asked_taps.h"
#include "recipe/recipe.h"

namespace aloft {

// Of steps that look at something in this way, for the probe and for a monitor beside it; `model`
// null: at modules of whatever is called.
AskedTaps taps_of(Look look, const ProbeSection& probe, const MonitorSection& monitor,
                  nn::Module* model);

// Whether a word of probe.list at level "mix" is a pattern of taps, and not a part of a name.
bool is_pattern(const std::string& word);

}  // namespace aloft
