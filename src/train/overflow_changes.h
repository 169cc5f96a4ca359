// What would have kept a step finite: for the first op of a recorded step that is not, why it has
// its type, which values made it, and changes of the recipe, each tried on that very step: the same
// parameters, batch and random numbers. docs/probe.md is the page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "recipe/recipe.h"

namespace aloft {

// Of the run in `run`, whose recipe looks for overflows; `found`: an entry of "found" in its
// overflow.json. What is added to that entry: "decision" (type, reason), "values" (the element,
// what it is in double, the operands there) and "tried", a list of changes. `overrides`: of the
// recipe, where the run itself did not look. Errors of RecordedRun.
nlohmann::ordered_json overflow_changes(const Path& run, const nlohmann::ordered_json& found,
                                        const std::vector<Override>& overrides = {});

// The same for people, a line each, behind overflow_text().
std::string overflow_changes_text(const nlohmann::ordered_json& added);

}  // namespace aloft
