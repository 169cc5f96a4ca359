#include "checkpoint/choices_json.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace aloft {

using nlohmann::json;

namespace {

constexpr const char* kInfinite = "inf";  // JSON has no number for it

json json_of(const Figures& figures) {
  json out = json::object();
  for (const auto& [of, numbers] : figures)
    for (const auto& [name, number] : numbers)
      out[of][name] = std::isfinite(number) ? json(number) : json(kInfinite);
  return out;
}

std::optional<Figures> figures_of_json(const json& from) {
  if (!from.is_object()) return std::nullopt;
  Figures figures;
  for (const auto& [of, numbers] : from.items()) {
    if (!numbers.is_object()) return std::nullopt;
    for (const auto& [name, number] : numbers.items()) {
      if (!number.is_number() && number != kInfinite) return std::nullopt;
      figures[of][name] =
          number.is_number() ? number.get<double>() : std::numeric_limits<double>::infinity();
    }
  }
  return figures;
}

}  // namespace

json json_of(const Choices& choices) {
  json out = json::object();
  for (const auto& [name, choice] : choices.all()) {
    out[name] = {{"value", choice.value}, {"because", choice.because}};
    if (!choice.asked.empty()) out[name]["asked"] = choice.asked;
    if (!choice.figures.empty()) out[name]["figures"] = json_of(choice.figures);
  }
  return out;
}

std::optional<Choices> choices_of_json(const json& from) {
  if (!from.is_object()) return std::nullopt;
  std::map<std::string, MeasuredChoice> by_name;
  for (const auto& [name, choice] : from.items()) {
    for (const char* key : {"value", "because"})
      if (!choice.is_object() || !choice.contains(key) || !choice[key].is_string())
        return std::nullopt;
    MeasuredChoice& made = by_name[name];
    made = {choice["value"], choice["because"], {}, ""};
    if (const auto asked = choice.find("asked"); asked != choice.end()) {
      if (!asked->is_string()) return std::nullopt;
      made.asked = *asked;
    }
    if (!choice.contains("figures")) continue;
    std::optional<Figures> figures = figures_of_json(choice["figures"]);
    if (!figures) return std::nullopt;
    made.figures = *std::move(figures);
  }
  return Choices(std::move(by_name));
}

}  // namespace aloft
