// What would have kept a step finite: for the first op of a recorded step that is not, why it has
// its type, which values made it, and changes of the recipe, each tried on that very step: the same
// parameters, batch and random numbers. docs/probe.md is the page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"

namespace aloft {

// Of the run in `run`, whose recipe looks for overflows; `found`: an entry of "found" in its
// overflow.json. What is added to that entry: "decision" (type, reason), "values" (the element,
// what it is in double, the operands there) and "tried", a list of changes. Errors of RecordedRun.
nlohmann::ordered_json overflow_changes(const Path& run, const nlohmann::ordered_json& found);

// The same for people, a line each, behind overflow_text().
std::string overflow_changes_text(const nlohmann::ordered_json& added);

}  // namespace aloft
