#include "observe/compare/name_map.h"

#include "base/error.h"
#include "base/text.h"
#include "files/toml_text.h"
#include "observe/compare/foreign_json.h"

namespace aloft::compare {

namespace {

constexpr std::uint64_t kLargestMap = std::uint64_t{1} << 24;

[[noreturn]] void refuse(const std::string& name, std::string_view saw) {
  throw UserError("E0728", "the mapping of names cannot be used")
      .at(name)
      .saw(saw)
      .need("a table `modules` of texts: \"h.*.mlp\" = \"layers.*.feed_forward\"");
}

ForeignJson json_of(std::string_view text, const std::string& name) {
  try {
    return parse_foreign_json(text, name);
  } catch (const DataError&) {
    refuse(name, "text that is neither TOML, by its name, nor JSON");
  }
}

// What each '*' of the pattern stands for in the text, the shortest run first.
bool fit(std::string_view pattern, std::string_view text, std::vector<std::string>& runs) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  const std::string_view rest = pattern.substr(star + 1);
  if (!glob_match("*" + std::string(rest), text)) return false;  // no search in vain
  for (std::size_t n = 0; n <= text.size(); ++n) {
    runs.emplace_back(text.substr(0, n));
    if (fit(rest, text.substr(n), runs)) return true;
    runs.pop_back();
  }
  return false;
}

}  // namespace

void NameMap::add(std::string from, std::string to) {
  pairs_.emplace_back(std::move(from), std::move(to));
}

std::optional<std::string> NameMap::other_name_of(std::string_view path) const {
  for (const auto& [from, to] : pairs_) {
    std::vector<std::string> runs;
    if (!fit(from, path, runs)) continue;
    std::string name;
    std::size_t next = 0;
    for (const char c : to)
      if (c == '*' && next < runs.size())
        name += runs[next++];
      else
        name += c;
    return name;
  }
  return std::nullopt;
}

NameMap NameMap::parse(std::string_view text, const std::string& name, bool is_toml) {
  NameMap map;
  if (!is_toml) {
    const ForeignJson v = json_of(text, name);
    const ForeignJson* const modules = v.find("modules");
    if (!modules || modules->kind != ForeignJson::Kind::Object) refuse(name, "no table `modules`");
    for (std::size_t i = 0; i < modules->keys.size(); ++i) {
      if (modules->items[i].kind != ForeignJson::Kind::Text) refuse(name, modules->keys[i]);
      map.add(modules->keys[i], modules->items[i].text);
    }
    return map;
  }
  try {
    const toml::table table = parse_toml(text, name);
    const toml::table* const modules = table["modules"].as_table();
    if (!modules) refuse(name, "no table `modules`");
    for (const auto& [key, value] : *modules) {
      const auto to = value.value<std::string>();
      if (!to) refuse(name, std::string(key.str()));
      map.add(std::string(key.str()), *to);
    }
  } catch (const TomlError& e) {
    refuse(name + ":" + std::to_string(e.line), e.what());
  }
  return map;
}

NameMap NameMap::read(const Path& file) {
  return parse(read_file(file, kLargestMap), file.string(), file.extension() == ".toml");
}

}  // namespace aloft::compare
