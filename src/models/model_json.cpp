#include "models/model_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "models/misfit_text.h"
#include "models/setting_json.h"

namespace aloft::models {

using nlohmann::json;

json json_of(const ModelSpec& spec) {
  json out = {{"family", spec.family->name}};
  for (const ModelSetting& s : spec.family->settings)
    if (!s.role.is_of_start)
      out[std::string(s.key)] = json_of(spec.settings.at(std::string(s.key)));
  return out;
}

namespace {

[[noreturn]] void damaged(const std::string& what) {
  throw DataError("E0642", "the model's description is damaged").saw(what);
}

const ModelFamily& family_in(const json& j) {
  if (!j.is_object() || !j.contains("family") || !j["family"].is_string())
    damaged("no family in it");
  const auto name = j["family"].get<std::string>();
  if (const ModelFamily* family = find_family(name)) return *family;
  std::vector<std::string> names;
  for (const ModelFamily& f : families()) names.emplace_back(f.name);
  throw DataError("E0642", "the model is of a family that this program does not have")
      .saw(in_quotes(name))
      .need("one of " + join(names, ", "));
}

SettingValue value_in(const json& j, const ModelSetting& s) {
  const std::string key(s.key);
  if (!j.contains(key)) return s.fallback;
  auto value = setting_of_json(j[key]);
  const std::string need = value ? need_of(s, *value) : "a value of its kind";
  if (!need.empty()) damaged(fmt::format("{} is {}; need {}", key, json_text(j[key]), need));
  return *value;
}

}  // namespace

ModelSpec model_of_json(const json& j) {
  if (j.is_null())
    throw DataError("E0642", "the checkpoint does not describe its model")
        .saw("none, as a program of its own saves it (Checkpoints)")
        .need("one that `aloft train` saved")
        .advice("read its model.safetensors by models::load_state() in that program");
  ModelSpec spec{&family_in(j), {}};
  for (const ModelSetting& s : spec.family->settings) spec.settings.emplace(s.key, value_in(j, s));
  if (spec.family->misfit)
    if (const auto misfit = spec.family->misfit(spec.settings))
      damaged(std::string(misfit->key) + ": " + text_of(*misfit, spec.settings));
  return spec;
}

}  // namespace aloft::models
