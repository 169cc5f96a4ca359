#include "run/recorded_recipe.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "recipe/parse_recorded.h"

namespace aloft {

namespace {

using nlohmann::json;

// JSON's numbers, texts, words and lists are TOML's as well; its objects are inline tables there.
std::string toml_of(const json& value) {
  std::vector<std::string> parts;
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      if (!member.is_null()) parts.push_back(json(key).dump() + " = " + toml_of(member));
    return "{" + join(parts, ", ") + "}";
  }
  if (!value.is_array()) return value.dump();
  for (const json& element : value) parts.push_back(toml_of(element));
  return "[" + join(parts, ", ") + "]";
}

// A line for each key of a section that is no default.
void add_keys(const json& section, const std::string& place, const std::string& name,
              const json& origin, std::string& text) {
  for (const auto& [key, value] : section.items()) {
    const std::string own = name + "." + key, at = place + "." + json(key).dump();
    if (value.is_object())
      add_keys(value, at, own, origin, text);
    else if (!value.is_null() && (!origin.is_object() || origin.contains(own)))
      text += at + " = " + toml_of(value) + "\n";
  }
}

}  // namespace

Recipe recorded_recipe(const json& recipe, const json& origin, const std::string& name,
                       const std::vector<Override>& overrides) {
  std::string text;
  for (const auto& [section, keys] : recipe.items()) {
    if (!keys.is_object())
      throw DataError("E0643", "run.json is not the record of a training run")
          .at(name)
          .saw("a recipe whose section " + section + " is no table");
    if (section == "precision")
      text += section + " = " + toml_of(keys) + "\n";
    else
      add_keys(keys, section, section, origin, text);
  }
  return parse_recorded(text, name, overrides);
}

}  // namespace aloft
