#include "checkpoint/choices_json.h"

#include <map>
#include <string>
#include <utility>

namespace aloft {

using nlohmann::json;

json json_of(const Choices& choices) {
  json out = json::object();
  for (const auto& [name, choice] : choices.all())
    out[name] = {{"value", choice.value}, {"because", choice.because}};
  return out;
}

std::optional<Choices> choices_of_json(const json& from) {
  if (!from.is_object()) return std::nullopt;
  std::map<std::string, MeasuredChoice> by_name;
  for (const auto& [name, choice] : from.items()) {
    for (const char* key : {"value", "because"})
      if (!choice.is_object() || !choice.contains(key) || !choice[key].is_string())
        return std::nullopt;
    by_name[name] = {choice["value"], choice["because"]};
  }
  return Choices(std::move(by_name));
}

}  // namespace aloft
