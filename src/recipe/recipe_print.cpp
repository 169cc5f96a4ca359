// A recipe as text, and what its sections mean for the library.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "precision/recipe_json.h"
#include "recipe/recipe.h"
#include "recipe/recipe_fields.h"
#include "recipe/recipe_json.h"
#include "recipe/recipe_unused.h"
#include "runtime/current_device.h"

namespace aloft {

using nlohmann::json;

namespace {

// As TOML: an object becomes an inline table.
std::string value_text(const json& value) {
  if (value.is_object()) {
    std::string inside;
    for (const auto& [key, v] : value.items())
      inside += (inside.empty() ? "" : ", ") + key + " = " + value_text(v);
    return "{ " + inside + " }";
  }
  if (value.is_array() && !value.empty() && value[0].is_object()) {
    std::string inside;
    for (const json& v : value) inside += (inside.empty() ? "" : ", ") + value_text(v);
    return "[" + inside + "]";
  }
  return json_text(value);
}

std::string origin_of(const Recipe& recipe, const std::string& key) {
  const auto it = recipe.origin.find(key);
  const std::string origin = it == recipe.origin.end() ? "default" : it->second;
  const char* device = std::getenv("ALOFT_DEVICE");
  if (key == "train.device" && recipe.train.device.empty() && device && *device)
    return origin + "; ALOFT_DEVICE names " + in_quotes(device);
  return key == "optimizer.no_decay" ? origin + "; norms never decay" : origin;
}

}  // namespace

void to_json(json& out, const ParameterGroup& group) {
  out = json::object();
  out["parameters"] = group.parameters;
  for (const GroupNumber& n : kGroupNumbers)
    if (const auto& value = group.*n.member) out[std::string(n.name)] = *value;
}

std::string print_config(const Recipe& recipe) {
  Recipe copy = recipe;
  std::string out, section;
  const auto line = [&](std::string_view key, const std::string& value) {
    const auto dot = key.find('.');
    if (key.substr(0, dot) != section) {
      section = key.substr(0, dot);
      out += (out.empty() ? "[" : "\n[") + section + "]\n";
    }
    const std::string text = fmt::format("{} = {}", key.substr(dot + 1), value);
    out += fmt::format("{:<48} # {}\n", text, origin_of(recipe, std::string(key)));
  };
  const std::vector<UnusedKey> unused = unused_keys(recipe, true);
  const auto is_unused = [&](std::string_view key) {
    return std::any_of(unused.begin(), unused.end(), [&](const auto& u) { return u.key == key; });
  };
  bool precision_done = false;
  for (const RecipeField& f : recipe_fields(copy)) {
    if (f.key.substr(0, 9) == "optimizer" && !precision_done) {
      precision_done = true;
      out += "\n[precision]\n";
      const json precision = json_of(recipe.precision);  // items() borrows it
      for (const auto& [key, value] : precision.items())
        out += fmt::format("{:<48} # {}\n", key + " = " + value_text(value),
                           origin_of(recipe, "precision." + key));
      section = "precision";
    }
    if (f.key == "train.steps" && recipe.train.epochs > 0)
      out += "# steps follow from epochs and the data\n";
    else if (is_unused(f.key))
      out += fmt::format("# {} is not used here\n", f.key);
    else
      std::visit([&](const auto* v) { line(f.key, value_text(json(*v))); }, f.target);
  }
  return out;
}

json json_of(const Recipe& recipe) {
  Recipe copy = recipe;
  json out = json::object();
  for (const RecipeField& f : recipe_fields(copy)) {
    json* at = &out;
    std::string_view key = f.key;
    for (auto dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      at = &(*at)[std::string(key.substr(0, dot))];
      key = key.substr(dot + 1);
    }
    std::visit([&](const auto* v) { (*at)[std::string(key)] = *v; }, f.target);
  }
  out["precision"] = json_of(recipe.precision);
  return out;
}

Device* device_of(const Recipe& r) {
  if (r.train.device.empty()) return nullptr;
  try {
    return &device_named(r.train.device);
  } catch (UserError& e) {
    e.add_line("at", "train.device, " + origin_of(r, "train.device"));
    throw;
  }
}

}  // namespace aloft
