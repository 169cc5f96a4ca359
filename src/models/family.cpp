#include "models/family.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace aloft::models {

#define MODEL(name) ModelFamily name##_family();
#include "models/catalog.inc"
#undef MODEL

const std::vector<ModelFamily>& families() {
  static const std::vector<ModelFamily> all = {
#define MODEL(name) name##_family(),
#include "models/catalog.inc"
#undef MODEL
  };
  return all;
}

const ModelFamily* find_family(std::string_view name) {
  for (const ModelFamily& family : families())
    if (family.name == name) return &family;
  return nullptr;
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
