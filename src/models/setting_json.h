// Settings as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "types/setting.h"

namespace aloft::models {

nlohmann::json json_of(const SettingValue& value);
// Nothing where the JSON is no value of any setting: null, an object, a list of texts.
std::optional<SettingValue> setting_of_json(const nlohmann::json& json);

}  // namespace aloft::models
