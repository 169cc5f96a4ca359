#include "observe/config_check/setting_forms.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "observe/config_check/setting_pairs.h"
#include "observe/config_check/setting_values.h"
#include "observe/config_check/unset_values.h"

namespace aloft::config_check {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBetas = "betas";
// Keys whose value is the type that is computed in.
constexpr std::string_view kTypeKeys[] = {"amp_dtype", "autocast_dtype",  "compute_dtype",
                                          "dtype",     "mixed_precision", "model_dtype",
                                          "precision", "params_dtype",    "torch_dtype"};

bool says_one_beta(const std::vector<Setting>& settings) {
  return std::ranges::any_of(settings, [](const Setting& s) {
    const std::string_view name = common_name(s.key);
    return name == "beta1" || name == "beta2";
  });
}

bool says_betas(const std::vector<Setting>& settings) {
  return std::ranges::any_of(settings, [](const Setting& s) { return last_part(s.key) == kBetas; });
}

// The numbers of a list, of JSON or as a script has it; none of what is no list.
std::vector<Json> numbers_of(const Setting& s) {
  std::vector<Json> all;
  if (s.value.is_array()) {
    all.assign(s.value.begin(), s.value.end());
  } else if (s.value.is_string()) {
    std::string text = s.value.get<std::string>();
    std::ranges::replace_if(
        text, [](char c) { return std::string_view("[](),").find(c) != std::string_view::npos; },
        ' ');
    for (const std::string_view part : split(text, ' '))
      if (!trim(part).empty()) all.emplace_back(std::string(trim(part)));
  }
  return all;
}

std::vector<Setting> with_single_betas(const std::vector<Setting>& settings) {
  std::vector<Setting> all;
  for (const Setting& s : settings) {
    const std::vector<Json> numbers =
        last_part(s.key) == kBetas ? numbers_of(s) : std::vector<Json>();
    if (numbers.size() < 2) {
      all.push_back(s);
      continue;
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      all.push_back(s);
      all.back().key += "[" + std::to_string(i) + "]";
      all.back().value = numbers[i];
      all.back().is_quoted = false;
    }
  }
  return all;
}

std::string value_below(const std::vector<Setting>& settings, std::string_view key) {
  for (const Setting& s : settings)
    if (s.key == key) return value_text(s);
  return "";
}

bool has_no_low_type(const std::vector<Setting>& recipe) {
  return value_below(recipe, "precision.level") == "O0";
}

std::optional<ComputeType> type_of_recipe(const std::vector<Setting>& settings) {
  for (const Setting& s : settings) {
    if (s.key != "precision.level") continue;
    const std::string level = value_text(s), type = value_below(settings, "precision.type");
    if (level == "O0") return ComputeType{"f32", s, level};
    return ComputeType{plain_type(type), s, level + ":" + type};
  }
  return std::nullopt;
}

// "16-mixed", "bf16-true", "no".
std::string type_of_word(std::string_view text) {
  std::string word = lower(trim(text));
  for (const std::string_view end : {"-mixed", "-true", "_mixed"})
    if (word.ends_with(end)) word.resize(word.size() - end.size());
  if (word == "16") return "f16";
  if (word == "32" || word == "no") return "f32";
  if (word == "64") return "f64";
  return plain_type(word);
}

// The name of a type that a setting is called after: "bf16", and of DeepSpeed "bf16.enabled".
std::string type_of_flag(std::string_view key) {
  std::string_view name = key;
  if (last_part(key) == "enabled" && key.rfind('.') != std::string_view::npos)
    name = key.substr(0, key.rfind('.'));
  else if (last_part(key) == "enabled")
    return "";
  return plain_type(last_part(name));
}

bool is_low(std::string_view type) { return type == "bf16" || type == "f16"; }

// Who decides it, and the keys that speak of it. A flag that is on, and a low type, win: weights
// may be stored in f32 and products be made in bf16.
std::optional<ComputeType> type_of_program(const std::vector<Setting>& settings,
                                           std::set<std::string>& speak) {
  std::optional<ComputeType> found;
  for (const Setting& s : settings) {
    const std::string value = value_text(s);
    std::string type = type_of_flag(s.key);
    if (!type.empty()) {
      const std::string word = lower(trim(value));
      const bool is_off = word == "false" || word == "0";
      if (!is_off && word != "true" && word != "1") continue;
      if (is_off) type = "f32";
    } else if (std::ranges::find(kTypeKeys, last_part(s.key)) != std::end(kTypeKeys)) {
      type = type_of_word(value);
    }
    if (type.empty()) continue;
    speak.insert(s.key);
    if (!found || (is_low(type) && !is_low(found->type))) found = ComputeType{type, s, value};
  }
  return found;
}

}  // namespace

bool is_of_recipe(const std::vector<Setting>& settings) {
  return std::ranges::any_of(settings, [](const Setting& s) { return s.is_harmless.has_value(); });
}

std::pair<std::vector<Setting>, std::vector<Setting>> in_one_form(const std::vector<Setting>& a,
                                                                  const std::vector<Setting>& b) {
  std::pair<std::vector<Setting>, std::vector<Setting>> both{a, b};
  if (is_of_recipe(a) != is_of_recipe(b))
    for (std::vector<Setting>* side : {&both.first, &both.second})
      std::erase_if(*side, [](const Setting& s) {
        // 0 epochs of a recipe: its length is said in steps.
        return !s.is_read || (s.key == "train.epochs" && s.value == 0);
      });
  auto& [x, y] = both;
  // Recipes say what is not set alike.
  if (!is_of_recipe(a) || !is_of_recipe(b))
    for (std::vector<Setting>* side : {&x, &y}) *side = with_values_that_count(*side);
  if (is_of_recipe(a) && is_of_recipe(b) && (has_no_low_type(a) || has_no_low_type(b)))
    for (std::vector<Setting>* side : {&x, &y})
      std::erase_if(*side, [](const Setting& s) { return s.key == "precision.type"; });
  if (says_betas(x) && !says_betas(y) && says_one_beta(y)) x = with_single_betas(x);
  if (says_betas(y) && !says_betas(x) && says_one_beta(x)) y = with_single_betas(y);
  return both;
}

std::optional<std::pair<ComputeType, ComputeType>> take_compute_types(std::vector<Setting>& a,
                                                                      std::vector<Setting>& b) {
  if (is_of_recipe(a) && is_of_recipe(b)) return std::nullopt;
  std::set<std::string> speak[2];
  const auto type_of = [](const std::vector<Setting>& side, std::set<std::string>& keys) {
    if (!is_of_recipe(side)) return type_of_program(side, keys);
    keys = {"precision.level", "precision.type"};
    return type_of_recipe(side);
  };
  auto x = type_of(a, speak[0]), y = type_of(b, speak[1]);
  if (!x || !y || last_part(x->said.key) == last_part(y->said.key)) return std::nullopt;
  std::erase_if(a, [&](const Setting& s) { return speak[0].contains(s.key); });
  std::erase_if(b, [&](const Setting& s) { return speak[1].contains(s.key); });
  return std::pair(*std::move(x), *std::move(y));
}

std::string plain_optimizer(std::string_view name) {
  std::string word = lower(trim(name));
  word.erase(0, word.rfind('.') + 1);
  for (const std::string_view end :
       {"_torch_fused", "_torch_xla", "_torch_npu_fused", "_apex_fused", "_torch", "_fused", "_hf"})
    if (word.ends_with(end)) {
      word.resize(word.size() - end.size());
      break;
    }
  return word;
}

}  // namespace aloft::config_check
