// What `aloft probe run --task overflow` has found: the first op of each step that is not finite,
// and what would have kept it so.
#pragma once

#include <vector>

#include "base/file.h"
#include "cli/probe_answer.h"
#include "recipe/recipe.h"

namespace aloft::cli {

// Says what the overflow.json `file` holds, which is steps of `run`, and tries changes of the
// recipe on the first of them, which are written into the file, too.
// `overrides`: of the run's recipe, where the run itself did not look.
void answer_overflows(ProbeAnswer& answer, const Path& file, const Path& run,
                      const std::vector<Override>& overrides = {});

}  // namespace aloft::cli
