// What came out, as files have it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "observe/config_check/finding.h"
#include "observe/config_check/side.h"

namespace aloft::config_check {

// {"verdict": "error", "a": NAME, "b": NAME, "checks": [{"name": "env", "level": ..., "findings":
// [{"level", "a_name", "b_name", "a_value", "b_value", "matched", "advice"}]}]}
nlohmann::ordered_json json_of(const Side& a, const Side& b, const std::vector<Section>& sections);

// A page that needs nothing else, with the same.
std::string page_of(const Side& a, const Side& b, const std::vector<Section>& sections);

// result.json, result.xlsx (msprobe_sheets.h) and result.html into a folder, each whole or not
// there. EnvironmentError E0603, E0604.
void write_results(const Path& folder, const Side& a, const Side& b,
                   const std::vector<Section>& sections);

}  // namespace aloft::config_check
