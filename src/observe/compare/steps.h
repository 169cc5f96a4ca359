// What came out of several steps or processes together.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "observe/compare/comparison.h"

namespace aloft::compare {

// "first at step3: update, fc (Linear): ...; 4 of 60 steps part", or that none does; and how many
// were compared in part, where any was, or not at all: `alone`, as pair_dump_files() says it.
std::string summary_of(const std::vector<StepResult>& results, const std::string& alone = "");

// "; not compared: step3 of ported"; "" of nothing.
std::string without_text(const std::string& alone);

// compare_result.json of them all: `sentence`, and of each of `steps` what it says and its files.
nlohmann::ordered_json steps_json(const std::vector<StepResult>& results,
                                  const std::string& alone = "");

// What names of results begin with.
inline constexpr const char* kResults = "compare_result";

// Moves the results that lie in `written` into `folder`, and removes there what an earlier
// comparison has left of other steps, which would stand beside those of this one.
// EnvironmentError E0603, E0604.
void replace_results(const Path& written, const Path& folder);

}  // namespace aloft::compare
