#include "observe/config_check/settings_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/text.h"
#include "files/yaml_text.h"
#include "observe/config_check/python_settings.h"
#include "observe/config_check/shell_script.h"

namespace aloft::config_check {

namespace {

using Json = nlohmann::ordered_json;
using compare::ForeignJson;

// What a file of settings has at most, in bytes.
constexpr std::uint64_t kMostBytes = 16 << 20;
// Of JSON, which takes some hundred bytes a value while it is read.
constexpr std::size_t kMostOfJson = 4 << 20;

[[noreturn]] void refuse(const std::string& name, int line, std::string_view saw) {
  throw DataError("E0844", "a file of settings cannot be read")
      .at(line > 0 ? name + ":" + std::to_string(line) : name)
      .saw(saw)
      .need("a shell script, Python, YAML or JSON, as the ending of its name says");
}

bool is_plain_list(const Json& v) {
  return v.is_array() && std::ranges::none_of(v, [](const Json& item) {
           return item.is_object() || (item.is_array() && !item.empty() && item[0].is_object());
         });
}

void add_leaves(const Json& v, const std::string& key, const std::string& place,
                std::vector<Setting>& to) {
  const auto below = [&](const std::string& name) { return key.empty() ? name : key + "." + name; };
  if (v.is_object()) {
    for (const auto& [name, member] : v.items()) add_leaves(member, below(name), place, to);
  } else if (v.is_array() && !is_plain_list(v)) {
    for (std::size_t i = 0; i < v.size(); ++i)
      add_leaves(v[i], below(std::to_string(i)), place, to);
  } else if (!key.empty()) {
    to.push_back({key, v, place});
  }
}

Json parse_text(std::string_view text, const std::string& ending, const std::string& name) {
  if (ending == ".json") {
    if (text.size() > kMostOfJson) refuse(name, 0, "more than 4 MiB of JSON");
    try {
      return value_of(compare::parse_foreign_json(text, name));
    } catch (const DataError&) {
      refuse(name, 0, json_problem(text));
    }
  }
  try {
    return parse_yaml(text);
  } catch (const YamlError& e) {
    refuse(name, e.line, e.what());
  }
}

std::vector<Setting> settings_of_python(std::string_view text, const std::string& name) {
  if (!is_utf8(text)) refuse(name, 0, "bytes that are not UTF-8");
  std::vector<Setting> all;
  try {
    for (const PythonValue& v : parse_python(text))
      add_leaves(v.value, v.name, name + ":" + std::to_string(v.line), all);
  } catch (const PythonError& e) {
    refuse(name, e.line, e.what());
  }
  return all;
}

std::string ending_of(const Path& path) { return lower(path.extension().string()); }
bool is_script(const std::string& ending) { return ending == ".sh" || ending == ".bash"; }

}  // namespace

bool is_settings_file(const Path& path) {
  constexpr std::string_view kEndings[] = {".sh", ".bash", ".py", ".yaml", ".yml", ".json"};
  return std::ranges::find(kEndings, ending_of(path)) != std::end(kEndings);
}

std::vector<Setting> settings_of(const Json& value, const std::string& place) {
  std::vector<Setting> all;
  add_leaves(value, "", place, all);
  return all;
}

Json value_of(const ForeignJson& v) {
  using Kind = ForeignJson::Kind;
  switch (v.kind) {
    case Kind::Null:
      return nullptr;
    case Kind::Bool:
      return v.number != 0;
    case Kind::Number:
      if (!v.is_whole) return v.number;
      if (const auto whole = parse_int(v.text)) return *whole;
      return v.text;
    case Kind::Text:
      return v.text;
    case Kind::List: {
      Json list = Json::array();
      for (const ForeignJson& item : v.items) list.push_back(value_of(item));
      return list;
    }
    case Kind::Object: {
      // Of a key that comes twice the last counts, as in Python. A lookup in `members` looks at all
      // of them.
      Json object = Json::object();
      Json::object_t& members = object.get_ref<Json::object_t&>();
      std::unordered_map<std::string_view, std::ptrdiff_t> places;
      for (std::size_t i = 0; i < v.keys.size(); ++i) {
        const auto [it, is_new] = places.emplace(v.keys[i], std::ssize(members));
        if (is_new)
          members.emplace_back(v.keys[i], value_of(v.items[i]));
        else
          (members.begin() + it->second)->second = value_of(v.items[i]);
      }
      return object;
    }
  }
  return nullptr;
}

Side parse_settings(std::string_view text, const std::string& name) {
  Side side;
  side.name = name;
  const std::string ending = ending_of(name);
  std::vector<Setting>& settings = side.settings["static"];
  if (ending == ".py") {
    settings = settings_of_python(text, name);
    return side;
  }
  if (!is_script(ending)) {
    settings = settings_of(parse_text(text, ending, name), name);
    return side;
  }
  if (!is_utf8(text)) refuse(name, 0, "bytes that are not UTF-8");
  const ShellScript script = parse_shell(text);
  std::map<std::string, std::size_t> places;
  for (const ShellValue& o : script.options) {
    const Json value = o.is_flag || o.value == "true" ? Json(true) : Json(o.value);
    Setting setting{o.name, value, name + ":" + std::to_string(o.line)};
    setting.is_untyped = true;
    setting.is_quoted = o.is_quoted && o.value.find_first_of(" \t\n") != std::string::npos;
    // The last of a name counts, as programs take it.
    const auto [it, is_new] = places.emplace(o.name, settings.size());
    if (is_new)
      settings.push_back(std::move(setting));
    else
      settings[it->second] = std::move(setting);
  }
  if (!script.passed_over.empty()) {
    constexpr std::size_t kMostNamed = 8;
    std::vector<std::string> names = script.passed_over;
    const std::size_t more = names.size() - std::min(names.size(), kMostNamed);
    names.resize(names.size() - more);
    log_warning("{}: options whose values only a run would know are not compared: {}{}", name,
                harmless(join(names, ", ")), more > 0 ? fmt::format(" and {} more", more) : "");
  }
  side.environment = script.environment;
  return side;
}

Side read_settings(const Path& path) {
  static_cast<void>(size_of_file(path));  // of a regular file: a pipe would be waited for
  return parse_settings(read_file(path, kMostBytes), path.string());
}

}  // namespace aloft::config_check
