#include "models/setting_json.h"

#include <algorithm>

namespace aloft::models {

using nlohmann::json;

json json_of(const SettingValue& value) {
  return std::visit([](const auto& v) { return json(v); }, value);
}

std::optional<SettingValue> setting_of_json(const json& j) {
  // Beyond 63 bits no setting goes: as a number it is outside its limits.
  const auto is_whole = [](const json& v) {
    return v.is_number_integer() &&
           (!v.is_number_unsigned() || v.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  };
  if (j.is_boolean()) return j.get<bool>();
  if (is_whole(j)) return j.get<std::int64_t>();
  if (j.is_number()) return j.get<double>();
  if (j.is_string()) return j.get<std::string>();
  if (!j.is_array()) return std::nullopt;
  if (std::all_of(j.begin(), j.end(), is_whole)) return j.get<std::vector<std::int64_t>>();
  const auto is_number = [](const json& v) { return v.is_number(); };
  if (std::all_of(j.begin(), j.end(), is_number)) return j.get<std::vector<double>>();
  return std::nullopt;
}

}  // namespace aloft::models
