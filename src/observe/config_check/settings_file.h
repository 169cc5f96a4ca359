// Hyper-parameters in files of others: shell scripts, Python, YAML, JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "observe/compare/foreign_json.h"
#include "observe/config_check/side.h"

namespace aloft::config_check {

// Whether a file of that name is read: *.sh, *.bash, *.py, *.yaml, *.yml, *.json.
bool is_settings_file(const Path& path);

// The leaves of a value: keys joined by dots, lists of plain values whole, others by their places
// ("groups.0.lr"). `place` is that of all of them.
std::vector<Setting> settings_of(const nlohmann::ordered_json& value, const std::string& place);

// The same value; whole numbers beyond 64 bits are text, which a double would round.
nlohmann::ordered_json value_of(const compare::ForeignJson& value);

// What a file says, by the ending of its name: settings, and of a script what its programs get of
// the environment. DataError E0844 where it is not what its name says, with the line; E0601 (no
// regular file), E0602.
Side read_settings(const Path& path);
// The same of a text.
Side parse_settings(std::string_view text, const std::string& name);

}  // namespace aloft::config_check
