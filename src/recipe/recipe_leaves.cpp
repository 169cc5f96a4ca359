#include "recipe/recipe_leaves.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "files/toml_text.h"

namespace aloft {
namespace {

using nlohmann::json;

json to_json(const toml::node& node) {
  if (const auto* v = node.as_string()) return v->get();
  if (const auto* v = node.as_integer()) return v->get();
  if (const auto* v = node.as_floating_point()) return v->get();
  if (const auto* v = node.as_boolean()) return v->get();
  if (const auto* list = node.as_array()) {
    json out = json::array();
    for (const toml::node& n : *list) out.push_back(to_json(n));
    return out;
  }
  if (const auto* table = node.as_table()) {
    json out = json::object();
    for (const auto& [k, v] : *table) out[std::string(k.str())] = to_json(v);
    return out;
  }
  return nullptr;  // dates: no key takes one
}

void inner_origins(const toml::table& table, const std::string& prefix, std::string_view name,
                   std::map<std::string, std::string>& into) {
  for (const auto& [key, value] : table)
    into[prefix + std::string(key.str())] = fmt::format("{}:{}", name, value.source().begin.line);
}

// The leaves of a table in order of appearance; [precision] and the optimizer's groups stay whole.
void collect(const toml::table& table, const std::string& prefix, std::string_view name,
             std::vector<Leaf>& into) {
  for (const auto& [k, node] : table) {
    const std::string key = prefix.empty() ? std::string(k.str()) : prefix + "." + std::string(k);
    const std::string origin = fmt::format("{}:{}", name, node.source().begin.line);
    if (node.is_table() && key != "precision" && key != kGroupsKey)
      collect(*node.as_table(), key, name, into);
    else
      into.push_back({key, origin, to_json(node), {}});
    if (key == "precision" && node.is_table())
      inner_origins(*node.as_table(), "", name, into.back().inner);
    if (key == kGroupsKey && node.is_array())
      for (std::size_t i = 0; i < node.as_array()->size(); ++i)
        if (const auto* group = node.as_array()->get(i)->as_table())
          inner_origins(*group, std::to_string(i) + ".", name, into.back().inner);
  }
}

// A --set value is TOML where it parses as TOML, else the text itself.
json override_value(const std::string& text) {
  try {
    const toml::table t = parse_toml("x = " + text);
    if (t.size() == 1) return to_json(*t.get("x"));
  } catch (const TomlError&) {
  }
  return text;
}

// A table given to --set is its keys, as in the file; [precision] takes tables whole.
void spread(const std::string& key, const json& value, std::vector<Leaf>& into) {
  const bool whole = key == "precision" || key.starts_with("precision.");
  if (!value.is_object() || value.empty() || whole)
    into.push_back({key, kSetOrigin, value, {}});
  else
    for (const auto& [inner, v] : value.items()) spread(key + "." + inner, v, into);
}

}  // namespace

std::vector<Leaf> leaves_of(std::string_view text, std::string_view name,
                            const std::vector<Override>& overrides) {
  std::vector<Leaf> leaves;
  if (const int line = line_of_stray_unicode(text); line != 0)
    throw UserError("E0714", "the recipe is not TOML")
        .at(fmt::format("{}:{}", name, line))
        .saw("a letter beyond ASCII outside quotes and comments");
  try {
    collect(parse_toml(text, name), "", name, leaves);
  } catch (const TomlError& e) {
    throw UserError("E0714", "the recipe is not TOML")
        .at(e.line > 0 ? fmt::format("{}:{}", name, e.line) : std::string(name))
        .saw(e.what());
  }
  for (const Override& o : overrides) {
    // TOML and run.json hold UTF-8 only.
    if (!is_utf8(o.key) || !is_utf8(o.value))
      throw UserError("E0713", "--set needs KEY=VALUE in UTF-8")
          .saw(in_quotes(o.key) + " = " + in_quotes(o.value));
    spread(o.key, override_value(o.value), leaves);
  }
  return leaves;
}

}  // namespace aloft
