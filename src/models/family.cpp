#include "models/family.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace aloft::models {

#define MODEL(name) ModelFamily name##_family();
#include "models/catalog.inc"
#undef MODEL

namespace {

std::deque<ModelFamily>& all_families() {
  static std::deque<ModelFamily> all = {
#define MODEL(name) name##_family(),
#include "models/catalog.inc"
#undef MODEL
  };
  return all;
}

UserError cannot_be(std::string_view family, const std::string& saw, const std::string& need) {
  return UserError("E0212", "this cannot be a family of models: " + in_quotes(family))
      .saw(saw)
      .need(need);
}

bool is_word(std::string_view text, std::string_view besides) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           besides.find(c) != std::string_view::npos;
  });
}

// The names of families and sizes share a command line: `bench step --model NAME`.
void check_names(const ModelFamily& family) {
  const auto check = [&](std::string_view name, std::string_view besides) {
    if (!is_word(name, besides))
      throw cannot_be(family.name, "the name " + in_quotes(name), "letters a-z, digits, _");
    if (find_family(name) || family_of_size(name))
      throw cannot_be(family.name, in_quotes(name) + " is there already", "a name of its own");
  };
  check(family.name, "_");
  std::set<std::string_view> own = {family.name};
  for (const ModelSize& size : family.sizes) {
    if (size.names.empty())
      throw cannot_be(family.name, "a size without a name", "one name or more");
    for (const std::string_view name : size.names) {
      check(name, "_-.");
      if (!own.insert(name).second)
        throw cannot_be(family.name, in_quotes(name) + " twice", "a name of its own for each size");
    }
    for (auto [key, value] : size.settings) {
      const ModelSetting* s = family.find(key);
      if (!s)
        throw cannot_be(family.name, "a size that sets " + in_quotes(key),
                        "a setting of the family");
      if (const std::string need = need_of(*s, value); !need.empty())
        throw cannot_be(family.name, "a size with " + in_quotes(key) + " = " + str(value), need);
    }
  }
}

// A number of the data's is 0 until there is data.
void check_setting(const ModelFamily& family, const ModelSetting& s) {
  const std::string key = "the setting " + in_quotes(s.key);
  if (!is_word(s.key, "_")) throw cannot_be(family.name, key, "a key of letters a-z, digits, _");
  if (s.key == "family" || s.key == "size")
    throw cannot_be(family.name, key, "a key that [model] does not have already");
  if (std::count_if(family.settings.begin(), family.settings.end(),
                    [&](const ModelSetting& other) { return other.key == s.key; }) > 1)
    throw cannot_be(family.name, key + " twice", "each setting once");
  SettingValue value = s.fallback;
  const bool is_open =
      value == SettingValue(std::int64_t{0}) && (s.role.is_of_data || s.role.derived);
  if (s.role.is_of_data && !std::holds_alternative<std::int64_t>(value))
    throw cannot_be(family.name, key + " of the data", "a whole number (std::int64_t)");
  if (s.role.is_of_data && value == SettingValue(std::int64_t{0}) &&
      !family.made_up.contains(s.key))
    throw cannot_be(family.name, key + " of the data with the fallback 0",
                    "its value where there is no data (ModelFamily::made_up), as in a bench");
  if (!s.role.published.empty() && !s.role.assumed)
    throw cannot_be(family.name, key + " with a name in config.json",
                    "also what is assumed where the file does not say (SettingRole::assumed)");
  if (const std::string need = need_of(s, value); !is_open && !need.empty())
    throw cannot_be(family.name, key + " with the fallback " + str(s.fallback), need);
}

}  // namespace

void refuse_kind(std::string_view key, const SettingValue& saw, const SettingValue& need) {
  throw UserError("E0212", "a family's setting has a value of another kind than its config")
      .saw(std::string(key) + " = " + str(saw))
      .need("one such as " + str(need));
}

void refuse_key(std::string_view family, std::string_view key) {
  throw cannot_be(family, "a value of " + in_quotes(key), "keys of the config's fields()");
}

const std::deque<ModelFamily>& families() { return all_families(); }

bool reads_text(const ModelFamily& family) {
  return family.make_classifier && family.find("vocab");
}

const ModelFamily& add_family(ModelFamily family) {
  check_names(family);
  for (const ModelSetting& s : family.settings) check_setting(family, s);
  if (!family.make_causal_lm == !family.make_classifier)
    throw cannot_be(family.name, family.make_causal_lm ? "both makers" : "no maker",
                    "make_causal_lm or make_classifier, one of them");
  const std::string_view type = family.published.model_type;
  for (const ModelFamily& other : families())
    if (!type.empty() && other.published.model_type == type)
      throw cannot_be(family.name,
                      "model_type " + in_quotes(type) + ", which is " + in_quotes(other.name),
                      "a model_type of its own, or none");
  return all_families().emplace_back(std::move(family));
}

const ModelFamily* find_family(std::string_view name) {
  for (const ModelFamily& family : families())
    if (family.name == name) return &family;
  return nullptr;
}

const ModelFamily& usual_family() {
  return *std::ranges::find(families(), true, &ModelFamily::is_usual);
}

const ModelFamily* family_of_size(std::string_view size) {
  for (const ModelFamily& family : families())
    if (family.size(size)) return &family;
  return nullptr;
}

const ModelSetting* ModelFamily::find(std::string_view key) const {
  const auto it = std::find_if(settings.begin(), settings.end(),
                               [&](const ModelSetting& s) { return s.key == key; });
  return it == settings.end() ? nullptr : &*it;
}

const ModelSize* ModelFamily::size(std::string_view wanted) const {
  for (const ModelSize& size : sizes)
    if (std::find(size.names.begin(), size.names.end(), wanted) != size.names.end()) return &size;
  return nullptr;
}

SettingValues ModelFamily::defaults() const {
  SettingValues out;
  for (const ModelSetting& s : settings) out.emplace(s.key, s.fallback);
  return out;
}

std::vector<std::string> names_of_sizes(const ModelFamily& family) {
  std::vector<std::string> all;
  for (const ModelSize& size : family.sizes)
    all.insert(all.end(), size.names.begin(), size.names.end());
  return all;
}

SettingValues settings_of_size(const ModelFamily& family, std::string_view wanted) {
  if (const ModelSize* size = family.size(wanted)) {
    SettingValues out = family.defaults();
    for (const auto& [key, value] : size->settings) out[key] = value;
    return out;
  }
  std::vector<std::string> shown;
  for (const ModelSize& size : family.sizes) shown.emplace_back(size.names.front());
  const std::string near = nearest_name(wanted, names_of_sizes(family));
  UserError e("E0712",
              "there is no " + std::string(family.name) + " of the size " + in_quotes(wanted));
  e.add_line("need", "one of " + join(shown, ", "));
  if (!near.empty()) e.add_line("try", near);
  throw e;
}

}  // namespace aloft::models
