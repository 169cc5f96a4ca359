// aloft recipes

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "models/family.h"
#include "models/setting_json.h"
#include "optim/advice.h"
#include "optim/kind.h"
#include "recipe/foreign_keys.h"
#include "recipe/recipe_fields.h"
#include "scalar/block_float.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

// The paragraph of comment that a recipe begins with; a line that stands further in is a command.
std::string description_of(const Path& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (text.empty() && trim(line).empty()) continue;
    if (!line.starts_with('#') || (!text.empty() && line.starts_with("#  "))) break;
    const std::string_view words = trim(std::string_view(line).substr(1));
    if (words.empty()) break;
    text.append(text.empty() ? "" : " ").append(words);
  }
  return text;
}

// The recipes in `folder`, by name: (path, description).
std::vector<std::pair<std::string, std::string>> recipes_in(const Path& folder) {
  std::vector<std::pair<std::string, std::string>> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".toml")
      found.emplace_back(entry.path().string(), description_of(entry.path()));
  std::sort(found.begin(), found.end());
  return found;
}

// recipes/ where there is one, else those that were installed with the program: PREFIX/bin/aloft
// has PREFIX/share/aloft/recipes.
std::string default_folder() {
  std::error_code failed;
  const Path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const Path installed = self.parent_path().parent_path() / "share" / "aloft" / "recipes";
  const bool here = std::filesystem::is_directory("recipes", failed);
  return !here && std::filesystem::is_directory(installed, failed) ? installed.string() : "recipes";
}

std::string kind_of(const RecipeField& f) {
  struct Kind {
    std::string operator()(const bool*) const { return "boolean"; }
    std::string operator()(const double*) const { return "number"; }
    std::string operator()(const std::string*) const { return "text"; }
    std::string operator()(const std::vector<std::string>*) const { return "list of text"; }
    std::string operator()(const std::vector<double>*) const { return "list of numbers"; }
    std::string operator()(const std::vector<ParameterGroup>*) const { return "list of tables"; }
    std::string operator()(const void*) const { return "integer"; }
  };
  return std::visit(Kind{}, f.target);
}

json described(const RecipeField& f) {
  json key = {{"key", f.key}, {"doc", f.doc}, {"type", kind_of(f)}};
  std::visit([&](const auto* v) { key["default"] = *v; }, f.target);
  if (f.least < f.most) key["range"] = {f.least, f.most};
  if (!f.choices.empty()) key["choices"] = f.choices;
  if (!f.kinds.empty()) key["kinds"] = f.kinds;
  return key;
}

// A key of another system's, which is taken.
json described(const ForeignKey& f) {
  std::string meaning = "of other systems; does nothing: ";
  if (!f.read_as.empty()) meaning = fmt::format("of other systems; read as {}: ", f.read_as);
  if (!f.only.empty()) meaning = fmt::format("of other systems; {}, no other: ", f.only);
  const bool is_number = !f.read_as.empty() || (!f.only.empty() && parse_double(f.only));
  json key = {{"key", f.key},
              {"doc", meaning + std::string(f.why)},
              {"type", is_number ? "number" : "boolean"},
              {"default", nullptr},
              {"read_as", f.read_as}};
  if (!f.kind.empty()) key["kinds"] = {f.kind};
  return key;
}

// What decides which keys a section has: the recipe's family of models, its kind of optimizer.
struct Selector {
  std::string key;        // "model.family"
  std::string_view list;  // how a key of some says of which: "families"
  std::vector<std::string_view> names;
  bool (*has)(std::string_view name, std::string_view key);  // whether one of the name has the key
};

// Options of a kind, and what begins otherwise with each.
bool has_own_default(const optim::OptimizerKind& kind, std::string_view key) {
  if (key == "rest") return !kind.usual_rest.empty();
  return key == "lr" || kind.find(key) != nullptr;
}

std::vector<Selector> selectors() {
  Selector models{"model.family", "families", {}, [](std::string_view name, std::string_view key) {
                    return key.starts_with("model.") && key != "model.family" &&
                           key != "model.size" && models::find_family(name)->find(key.substr(6));
                  }};
  for (const models::ModelFamily& family : models::families()) models.names.push_back(family.name);
  Selector optimizers{
      "optimizer.kind", "optimizers", {}, [](std::string_view name, std::string_view key) {
        return key.starts_with("optimizer.") &&
               has_own_default(optim::optimizer_kind(name), key.substr(10));
      }};
  for (const optim::OptimizerKind& kind : optim::optimizer_kinds())
    optimizers.names.push_back(kind.name);
  return {models, optimizers};
}

bool is_of_some(std::string_view key) {
  const auto all = selectors();
  return std::any_of(all.begin(), all.end(), [&](const Selector& s) {
    return std::any_of(s.names.begin(), s.names.end(),
                       [&](std::string_view name) { return s.has(name, key); });
  });
}

// The keys that not all of a selector's names have: alike in several, they stand once.
json keys_by(const Selector& selector) {
  json out = json::array();
  for (const std::string_view name : selector.names) {
    Recipe recipe = parse_recipe("", "", {{selector.key, std::string(name)}});
    for (const RecipeField& f : recipe_fields(recipe)) {
      if (!selector.has(name, f.key)) continue;
      json key = described(f);
      const auto same = std::find_if(out.begin(), out.end(), [&](json other) {
        other.erase(std::string(selector.list));
        return other == key;
      });
      if (same != out.end()) {
        (*same)[std::string(selector.list)].push_back(name);
        continue;
      }
      key[std::string(selector.list)] = {name};
      out.push_back(std::move(key));
    }
  }
  return out;
}

json keys() {
  Recipe defaults;
  json out = json::array();
  const auto add = [&](const Selector& selector) {
    for (json& key : keys_by(selector)) out.push_back(std::move(key));
  };
  const std::vector<Selector> by = selectors();
  for (const RecipeField& f : recipe_fields(defaults)) {
    if (!is_of_some(f.key)) out.push_back(described(f));
    if (f.key == "model.size") add(by[0]);
    if (f.key == "optimizer.kind") add(by[1]);
  }
  for (const ForeignKey& foreign : foreign_keys()) out.push_back(described(foreign));
  out.push_back(
      {{"key", "precision"},
       {"doc",
        "level (auto, adaptive), types of phases and layers, lists, loss scale: docs/precision.md"},
       {"type", "text or table"},
       {"default", "O0"}});
  return out;
}

// Bytes of its states for each weight, by the formats (optimizer.states) that they may be kept in.
json state_bytes(const optim::FormulaRecord& f) {
  const double count = f.least_states;
  json out = json::object();
  const auto put = [&](StateFormat format, double bytes) {
    out[std::string(name_of(format))] = bytes * count;
  };
  put(StateFormat::F32, 4);
  if (f.states.empty() || f.needs_whole_states) return out;
  put(StateFormat::BF16, 2);
  constexpr double kOfBlock = static_cast<double>(scalar::block_bytes(scalar::kBlock));
  if (!f.is_of_tensors) put(StateFormat::Block8, kOfBlock / scalar::kBlock);
  return out;
}

// Every kind of optimizer as its record says it.
json optimizers() {
  json out = json::array();
  for (const optim::OptimizerKind& kind : optim::optimizer_kinds()) {
    const optim::Advice& advice = optim::advice_of(kind.name);
    json one = {{"name", kind.name},
                {"meaning", kind.meaning},
                {"lr", kind.usual_lr},
                {"use", advice.use},
                {"rates", advice.rates}};
    one["keys"] = json::array();
    for (const optim::OptimizerSetting& s : kind.settings)
      one["keys"].push_back(
          {{"key", s.key}, {"default", models::json_of(s.fallback)}, {"doc", s.meaning}});
    if (!kind.usual_rest.empty())
      one["keys"].push_back({{"key", "rest"},
                             {"default", kind.usual_rest},
                             {"doc", "name patterns of matrices that are taken for none"}});
    for (const optim::FormulaRecord& f : kind.formulas)
      one["formulas"].push_back({{"name", f.name},
                                 {"states", f.states},
                                 {"text", f.text},
                                 {"state_bytes", state_bytes(f)},
                                 {"sums", f.sums},
                                 {"is_of_tensors", f.is_of_tensors}});
    out.push_back(std::move(one));
  }
  return out;
}

ExitCode recipes(const std::string& folder, bool is_named, bool as_json) {
  if (is_named && !is_folder(folder))
    throw UserError("E0721", "there is no such folder of recipes")
        .at(folder)
        .saw(path_exists(folder) ? "a file" : "nothing")
        .advice(path_exists(folder) ? "aloft train " + folder + " --print-config for that one"
                                    : "aloft recipes, for those that come with the program");
  const auto found = recipes_in(folder);
  const json all = keys();
  if (as_json) {
    json list = json::array();
    for (const auto& [path, text] : found) list.push_back({{"path", path}, {"summary", text}});
    print_result(
        "{}\n",
        json_text(nlohmann::json{{"recipes", list}, {"keys", all}, {"optimizers", optimizers()}},
                  2));
    return ExitCode::Ok;
  }
  std::vector<std::vector<std::string>> rows{{"recipe", "what"}};
  for (const auto& [path, text] : found) rows.push_back({path, text});
  if (found.empty())
    print_result("no *.toml in {}\n\n", folder);
  else
    print_result("{}\n", table(rows));
  rows = {{"key", "default", "type", "meaning"}};
  for (const json& k : all) {
    std::string doc = k["doc"];
    if (k.contains("choices")) {
      doc += ":";
      for (const json& c : k["choices"]) doc += " " + c.get<std::string>();
    }
    for (const char* whose : {"families", "optimizers", "kinds"})
      if (k.contains(whose)) {
        doc += " (";
        for (const json& name : k[whose])
          doc += (doc.back() == '(' ? "" : ", ") + name.get<std::string>();
        doc += ")";
      }
    rows.push_back({k["key"], k["default"].dump(), k["type"], doc});
  }
  print_result("{}", table_of_names(rows));
  return ExitCode::Ok;
}

}  // namespace

Action recipes_verb(CLI::App& app) {
  struct Options {
    std::string folder = default_folder();
    bool json = false;
  };
  auto o = std::make_shared<Options>();
  const CLI::Option* folder =
      app.add_option("folder", o->folder, "where to look for recipes")->capture_default_str();
  add_json(app, o->json, "recipes, every key with its meaning, optimizers");
  return [o, folder] { return recipes(o->folder, folder->count() > 0, o->json); };
}

}  // namespace aloft::cli
