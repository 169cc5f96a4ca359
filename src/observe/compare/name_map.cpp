#include "observe/compare/name_map.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "files/toml_text.h"
#include "files/yaml_text.h"
#include "observe/compare/dump_file.h"
#include "observe/compare/foreign_json.h"

namespace aloft::compare {

namespace {

constexpr std::uint64_t kLargestMap = std::uint64_t{1} << 24;

[[noreturn]] void refuse(const std::string& name, std::string_view saw) {
  throw UserError("E0728", "the mapping of names cannot be used")
      .at(name)
      .saw(saw)
      .need(
          "a table `modules` of texts, \"h.*.mlp\" = \"layers.*.feed_forward\", or what msprobe "
          "takes as data, cell or layer mapping")
      .advice("docs/compare.md shows each");
}

[[noreturn]] void refuse_functions(const std::string& name) {
  throw UserError("E0728", "the mapping of names cannot be used")
      .at(name)
      .saw("ms_api and pt_api, of an API mapping of msprobe (-am), which is not read")
      .need("nothing where two functions do the same: they are found by what they take and give")
      .advice(
          "name values of the calls that are not: \"Functional.abs.0.forward.input.0: "
          "Torch.abs.0.forward.input.0\"");
}

// What a file has: the table `modules`, or, where there is none, all of it; of what is no text
// nothing. Or layers.
struct Content {
  bool is_table = false;
  std::vector<std::pair<std::string, std::optional<std::string>>> pairs;
  std::vector<NameMap::Layer> layers;
};

using Kind = ForeignJson::Kind;

bool is_of_functions(const ForeignJson& v) { return v.find("ms_api") || v.find("pt_api"); }

// Whether all that is in it are objects.
bool has_objects(const ForeignJson& v) {
  return !v.items.empty() && std::ranges::all_of(v.items, [](const ForeignJson& item) {
    return item.kind == Kind::Object;
  });
}

std::vector<NameMap::Layer> layers_of(const ForeignJson& v, const std::string& name) {
  std::vector<NameMap::Layer> layers;
  for (std::size_t i = 0; i < v.keys.size(); ++i)
    for (std::size_t k = 0; k < v.items[i].keys.size(); ++k) {
      const ForeignJson& to = v.items[i].items[k];
      const std::string& from = v.items[i].keys[k];
      if (to.kind != Kind::Text || to.text.empty() || from.empty())
        refuse(name, in_quotes(v.keys[i] + ": " + from) + ", which has no text");
      layers.push_back({v.keys[i], from, to.text});
    }
  return layers;
}

Content json_of(std::string_view text, const std::string& name) {
  ForeignJson v;
  try {
    v = parse_foreign_json(text, name);
  } catch (const DataError&) {
    refuse(name, "text that is neither TOML nor YAML, by its name, nor JSON");
  }
  if (is_of_functions(v) || (v.kind == Kind::List && std::ranges::any_of(v.items, is_of_functions)))
    refuse_functions(name);
  const ForeignJson* const modules = v.find("modules");
  const ForeignJson& table = modules ? *modules : v;
  if (table.kind != Kind::Object || (!modules && table.keys.empty()))
    refuse(name, "no table `modules`, and no names of values, cells or layers");
  if (!modules && has_objects(v)) return {false, {}, layers_of(v, name)};
  Content content{modules != nullptr, {}, {}};
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    const bool is_text = table.items[i].kind == Kind::Text;
    content.pairs.emplace_back(table.keys[i],
                               is_text ? std::optional(table.items[i].text) : std::nullopt);
  }
  return content;
}

Content yaml_of(std::string_view text, const std::string& name) {
  try {
    return json_of(parse_yaml(text).dump(), name);
  } catch (const YamlError& e) {
    refuse(e.line > 0 ? name + ":" + std::to_string(e.line) : name, e.what());
  }
}

Content toml_of(std::string_view text, const std::string& name) {
  try {
    const toml::table table = parse_toml(text, name);
    const toml::table* const modules = table["modules"].as_table();
    if (!modules) refuse(name, "no table `modules`");
    Content content{true, {}, {}};
    for (const auto& [key, value] : *modules)
      content.pairs.emplace_back(std::string(key.str()), value.value<std::string>());
    return content;
  } catch (const TomlError& e) {
    refuse(name + ":" + std::to_string(e.line), e.what());
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
  modules_.emplace_back(std::move(from), std::move(to));
}

std::optional<std::string> NameMap::other_name_by(const Pairs::value_type& patterns,
                                                  std::string_view path) {
  std::vector<std::string> runs;
  if (!fit(patterns.first, path, runs)) return std::nullopt;
  std::string name;
  std::size_t next = 0;
  for (const char c : patterns.second)
    if (c == '*' && next < runs.size())
      name += runs[next++];
    else
      name += c;
  return name;
}

std::optional<std::string> NameMap::other_name_of(std::string_view path) const {
  for (const Pairs::value_type& patterns : modules_)
    if (auto name = other_name_by(patterns, path)) return name;
  return std::nullopt;
}

// A value's name is that of a call with what it is to it behind: ".input.0". Some write those of
// gradients of parameters without the number of the call.
bool NameMap::add_value(const std::string& from, const std::string& to) {
  const auto call_of = [](const std::string& name) -> std::optional<Entry> {
    for (const std::string_view part : {".input.", ".output.", ".parameters."})
      if (const std::size_t at = name.rfind(part); at != std::string::npos)
        if (Entry e = parse_entry_name(name.substr(0, at)); e.direction != Direction::Other)
          return e;
    constexpr std::string_view kGradient = ".parameters_grad.";
    const std::size_t at = name.rfind(kGradient);
    if (at == std::string::npos) return std::nullopt;
    Entry e = parse_entry_name(name.substr(0, at) + std::string(kGradient) + "0");
    if (e.direction == Direction::Other) return std::nullopt;
    return e;
  };
  const auto ours = call_of(from), theirs = call_of(to);
  if (!ours || !theirs) return false;
  values_.emplace_back(from, to);
  if (ours->is_module && theirs->is_module && !ours->path.empty() && !theirs->path.empty() &&
      !other_name_of(ours->path))
    add(ours->path, theirs->path);
  return true;
}

NameMap NameMap::parse(std::string_view text, const std::string& name, MapFormat format) {
  const Content content = format == MapFormat::Toml   ? toml_of(text, name)
                          : format == MapFormat::Yaml ? yaml_of(text, name)
                                                      : json_of(text, name);
  NameMap map;
  map.name_ = name;
  map.layers_ = content.layers;
  bool has_values = false;
  for (const auto& [from, to] : content.pairs) {
    if (!to) refuse(name, from + ", which has no text");
    if (content.is_table)
      map.add(from, *to);
    else if (map.add_value(from, *to))
      has_values = true;
    else
      map.cells_.emplace_back(from, *to);
  }
  // What is no name of a value among such is a mistake in one.
  if (has_values && !map.cells_.empty())
    refuse(name, in_quotes(map.cells_[0].first) + ": " + in_quotes(map.cells_[0].second));
  return map;
}

NameMap NameMap::read(const Path& file) {
  if (path_exists(file) && !is_file(file)) refuse(file.string(), "no regular file");
  const std::string ending = lower(file.extension().string());
  const MapFormat format = ending == ".toml"                       ? MapFormat::Toml
                           : ending == ".yaml" || ending == ".yml" ? MapFormat::Yaml
                                                                   : MapFormat::Json;
  return parse(read_file(file, kLargestMap), file.string(), format);
}

std::vector<std::string> NameMap::lines() const {
  std::vector<std::string> lines;
  const auto add_all = [&](const Pairs& pairs) {
    for (const auto& [from, to] : pairs) lines.push_back(from + ": " + to);
  };
  if (!values_.empty()) {
    add_all(values_);
    return lines;  // the modules follow from these
  }
  add_all(cells_);
  for (const Layer& l : layers_) lines.push_back(l.kind + ": " + l.from + ": " + l.to);
  add_all(modules_);
  return lines;
}

std::string without_effect(const NameMap& map, const std::vector<LineFit>& fits) {
  constexpr std::size_t kMostNamed = 3;
  const std::vector<std::string> lines = map.lines();
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(lines.size(), fits.size()); ++i) {
    if (fits[i].in_npu && fits[i].in_bench) continue;
    if (++count > kMostNamed) continue;
    text += (text.empty() ? "" : ", ") + in_quotes(lines[i]) +
            (fits[i].in_npu ? " (not in the second dump)" : " (not in the first dump)");
  }
  if (count > kMostNamed) text += " and " + std::to_string(count - kMostNamed) + " more";
  return text;
}

}  // namespace aloft::compare
