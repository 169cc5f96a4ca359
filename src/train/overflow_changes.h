// What would have kept a step finite: for the first op of a recorded step that is not, why it has
// its type, which values made it, and changes of the recipe, each tried on that very step: the same
// parameters, batch and random numbers. docs/probe.md is the page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "passes/casting_emitter.h"
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

// Why the first value that is not finite has its type, of what was decided for its program: an
// entry's "decision"; null where nothing was.
nlohmann::ordered_json overflow_decision(const std::vector<DecisionRecord>& decisions,
                                         const nlohmann::ordered_json& first);

// Of a step that nobody can make again, such as one of a program that is no recipe's: the changes
// that would be tried, as an entry's "not_tried" has them: what each means, and nothing of whether
// it works. Empty: there is none that is of precision.
nlohmann::ordered_json untried_changes(const nlohmann::ordered_json& first);

// Both for people, a line each, behind overflow_text().
std::string untried_changes_text(const nlohmann::ordered_json& decision,
                                 const nlohmann::ordered_json& not_tried);

}  // namespace aloft
