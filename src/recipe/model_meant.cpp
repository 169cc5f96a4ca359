#include "recipe/model_meant.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/tokenizer.h"
#include "models/huggingface.h"
#include "models/setting_json.h"
#include "recipe/what_lies_there.h"

namespace aloft {

FamilyMeant family_meant(const std::vector<Leaf>& leaves) {
  FamilyMeant named, sized;
  for (const Leaf& leaf : leaves) {
    if (!leaf.value.is_string()) continue;
    const auto text = leaf.value.get<std::string>();
    if (leaf.key == "model.family") named = {models::find_family(text), leaf.origin == kSetOrigin};
    if (leaf.key == "model.size") sized = {models::family_of_size(text), leaf.origin == kSetOrigin};
  }
  const bool size_beats = sized.family && sized.is_set && !named.is_set;
  return named.family && !size_beats ? named : sized;
}

std::optional<KeyMistake> apply_size(Recipe& r) {
  ModelSection& m = r.model;
  const models::ModelFamily* family = models::find_family(m.family);
  if (m.size.empty() || !family) return std::nullopt;
  const std::string from = r.origin["model.size"];
  const models::ModelSize* size = family->size(m.size);
  if (!size)
    return KeyMistake{"model.size", fmt::format("model.size: {} is no {}, which model.family says",
                                                m.size, m.family)};
  for (const auto& [key, value] : size->settings) {
    const std::string full = "model." + key;
    const auto it = r.origin.find(full);
    const bool is_set = it != r.origin.end();
    if (is_set && (from != kSetOrigin || it->second == kSetOrigin)) continue;
    m.settings[key] = value;
    r.origin[full] = from + kSizeOrigin;
  }
  // What a size says of what would follow from other settings gives way where those are others.
  if (const auto misfit = family->misfit ? family->misfit(m.settings) : std::nullopt) {
    const models::ModelSetting* blamed = family->find(misfit->key);
    const std::string full = "model." + std::string(misfit->key);
    if (!blamed->role.derived || r.origin[full] != from + kSizeOrigin) return std::nullopt;
    m.settings[std::string(misfit->key)] = blamed->fallback;
    r.origin.erase(full);
  }
  return std::nullopt;
}

Path anchored(const Path& path, const Path& folder, bool is_set) {
  Path whole;
  for (const Path& part : std::filesystem::absolute(is_set ? path : folder / path))
    if (part != ".") whole /= part;
  return whole;
}

std::optional<FolderMeant> folder_meant(const std::vector<Leaf>& leaves, const Path& folder) {
  const Leaf* named = nullptr;
  for (const Leaf& leaf : leaves)
    if (leaf.key == "model.init" && leaf.value.is_string()) named = &leaf;
  if (!named || named->value.get<std::string>().empty()) return std::nullopt;
  const Path path = anchored(named->value.get<std::string>(), folder, named->origin == kSetOrigin);
  if (!path_exists(path / "config.json")) {
    UserError e("E0718", "a run cannot begin from this");
    e.add_line("at", path.string());
    e.add_line("in", named->origin == kSetOrigin ? "--init, or --set model.init"
                                                 : named->origin + ": model.init");
    say_what_lies(e, path, named->value.get<std::string>(),
                  "a folder of Hugging Face: config.json, and the weights beside it");
    throw e;
  }
  return FolderMeant{path, models::huggingface_spec(path), named->origin == kSetOrigin};
}

std::vector<KeyMistake> apply_folder(Recipe& r, const FolderMeant& init) {
  std::vector<KeyMistake> mistakes;
  const models::ModelFamily& family = *init.spec.family;
  const std::string from = (init.path / "config.json").string();
  ModelSection& m = r.model;
  // Said by somebody whom the folder does not beat.
  const auto is_said = [&](const std::string& key) {
    const auto it = r.origin.find(key);
    return it != r.origin.end() && (!init.is_set || it->second == kSetOrigin);
  };
  if (!m.size.empty() && is_said("model.size")) {
    mistakes.push_back(
        {"model.size", "model.size: model.init says the model; leave one of them out"});
  } else {
    m.size.clear();
    r.origin.erase("model.size");
  }
  if (m.family != family.name && is_said("model.family")) {
    mistakes.push_back({"model.family", fmt::format("model.family: {} is a {}, got {}", from,
                                                    family.name, m.family)});
    m.family = family.name;
    return mistakes;
  }
  m.family = family.name;
  if (!is_said("model.family")) r.origin["model.family"] = from;
  for (const models::ModelSetting& s : family.settings) {
    const std::string key(s.key), full = "model." + key;
    const SettingValue& theirs = *init.spec.find(key);
    SettingValue& value = m.settings.find(key)->second;
    const bool is_open = s.role.may_change || s.role.is_of_start;
    if (is_open && r.origin.contains(full)) continue;
    if (!is_said(full) || (s.role.is_of_data && value == SettingValue(std::int64_t{0}))) {
      value = theirs;
      r.origin[full] = from;
    } else if (value != theirs) {
      mistakes.push_back(
          {full, fmt::format("{}: {} has {}, got {}; leave it out", full, from,
                             models::json_of(theirs).dump(), models::json_of(value).dump())});
    }
  }
  const DataSection& d = r.data;
  const bool says_tokenizer = r.origin.contains("data.tokenizer.kind") ||
                              !d.tokenizer.path.empty() || !d.train_tokens.empty();
  const bool reads = family.make_causal_lm || models::reads_text(family);
  if (!says_tokenizer && reads && is_tokenizer(init.path)) {
    r.data.tokenizer.path = init.path.string();
    r.data.tokenizer.kind = kind_of_tokenizer(init.path);
    r.origin["data.tokenizer.path"] = r.origin["data.tokenizer.kind"] = init.path.string();
  }
  return mistakes;
}

}  // namespace aloft
