// What became of a request for taps, behind the passes: which values are there to be looked at,
// which are not and why, and what is nearest to them.
#pragma once

#include <string>
#include <vector>

#include "graph/tap.h"
#include "passes/pipeline.h"

namespace aloft {

// The taps that were lost on the way from `traced` to `compiled`, which the pipeline made of it
// with these options. UserError E0326 for a pattern none of whose values can be had, with the
// nearest that can; E0327 for one that means no value, with what is called nearly so.
std::vector<RefusedTap> check_taps(const Graph& compiled, const Graph& traced,
                                   const PassContext& context, const PipelineOptions& options);

}  // namespace aloft
