// Settings that a record describes and a recipe sets: of a model's family, of an optimizer. A
// record says each once, and keys, defaults, help, checks, printing and files follow from that.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "types/field_list.h"
#include "types/limits.h"

namespace aloft {

using SettingValue = std::variant<bool, std::int64_t, double, std::string,
                                  std::vector<std::int64_t>, std::vector<double>>;

// By key. Of a Setting's key the value has the kind of its fallback.
using SettingValues = std::map<std::string, SettingValue, std::less<>>;

struct Setting {
  std::string_view key;
  SettingValue fallback;  // where nothing is said
  Limits limits;          // of the value, or of each of a list
  std::string_view meaning;
};

// "true", "12", "0.02", "[2, 2]", a text as it is.
std::string str(const SettingValue& value);

// Why a setting cannot have a value, as "need": "a whole number", "1 to 1000"; "" where it can. A
// whole number goes for a number, and is made one.
std::string need_of(const Setting& setting, SettingValue& value);

}  // namespace aloft
