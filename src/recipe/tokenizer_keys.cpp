#include "recipe/tokenizer_keys.h"

#include <fmt/format.h>

#include "data/tokenizers/tokenizer_kind.h"

namespace aloft {
namespace {

constexpr std::string_view kOtherIds = "another tokenizer gives every id another meaning";
constexpr const char *kKind = "data.tokenizer.kind", *kPath = "data.tokenizer.path";

std::string key_of(std::string_view setting) { return "data.tokenizer." + std::string(setting); }

std::vector<std::string_view> kinds_with(std::string_view setting) {
  std::vector<std::string_view> names;
  for (const TokenizerKind& kind : tokenizer_kinds())
    for (const Setting& s : kind.settings)
      if (s.key == setting) names.push_back(kind.name);
  return names;
}

// Settings of the kinds; what several have stands once, where the first of them is.
std::vector<Setting> settings_of_kinds() {
  std::vector<Setting> all;
  for (const TokenizerKind& kind : tokenizer_kinds())
    for (const Setting& s : kind.settings)
      if (kinds_with(s.key).front() == kind.name) all.push_back(s);
  return all;
}

std::vector<std::string_view> names_of_kinds() {
  std::vector<std::string_view> names;
  for (const TokenizerKind& kind : tokenizer_kinds()) names.push_back(kind.name);
  return names;
}

}  // namespace

std::vector<RecipeField> tokenizer_fields(TokenizerSpec& spec) {
  using enum OnResume;
  std::vector<RecipeField> out{
      {Fixed, kKind, "tokenizer", &spec.kind, 0, 0, names_of_kinds(), false, kOtherIds}};
  for (const Setting& s : settings_of_kinds()) {
    RecipeField f{Fixed,         key_of(s.key),  s.meaning, {},        s.limits.least,
                  s.limits.most, s.limits.words, false,     kOtherIds, kinds_with(s.key)};
    std::visit([&](auto& value) { f.target = &value; }, spec.settings.find(s.key)->second);
    out.push_back(std::move(f));
  }
  out.push_back({Data, kPath, "load it from here instead of making it", &spec.path});
  out.back().resumed = kOtherIds;
  return out;
}

const std::vector<std::string>& tokenizer_setting_keys() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> keys;
    for (const Setting& s : settings_of_kinds()) keys.push_back(key_of(s.key));
    return keys;
  }();
  return all;
}

std::pair<std::string, std::string> tokenizer_mistake(const DataSection& data) {
  const TokenizerSpec& t = data.tokenizer;
  const TokenizerKind* kind = find_tokenizer_kind(t.kind);
  if (!data.train_tokens.empty() || !t.path.empty() || !kind) return {};
  if (!kind->make)
    return {kKind, fmt::format("{}: {} is not made of text; need {}, {}", kKind, t.kind, kPath,
                               kind->published->what)};
  const auto wrong = kind->misfit ? kind->misfit(kind->settings_of(t.settings)) : std::nullopt;
  if (!wrong) return {};
  return {key_of(wrong->key), fmt::format("{}: {}", key_of(wrong->key), wrong->text)};
}

void take_kind_of_path(Recipe& recipe) {
  TokenizerSpec& spec = recipe.data.tokenizer;
  if (spec.path.empty() || recipe.origin.contains(kKind) || !is_tokenizer(spec.path)) return;
  spec.kind = kind_of_tokenizer(spec.path);
  recipe.origin[kKind] = spec.path;
}

}  // namespace aloft
