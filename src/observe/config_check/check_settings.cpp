// Hyper-parameters of two sides.
#include "observe/config_check/checks.h"
#include "observe/config_check/setting_pairs.h"

namespace aloft::config_check {

namespace {

std::string advice_of(const SettingPair& p, const std::string& x, const std::string& y) {
  if (is_harmless(*p.a) || is_harmless(*p.b)) return "nothing that is learnt depends on it";
  std::string text = "set " + p.a->key + " to " + y + ", or " + p.b->key + " to " + x;
  if (p.matched.starts_with("similar"))
    text += "; where the two are not one setting, give each side the one that it lacks";
  return text;
}

// How the two names were found to be one, in msprobe's words.
std::string msprobe_word(const std::string& matched) {
  if (matched == "name") return "pure name";
  if (matched == "synonym") return "mapping";
  constexpr std::string_view kSimilar = "similar ";
  return matched.starts_with(kSimilar) ? "similarity:" + matched.substr(kSimilar.size()) : matched;
}

Finding finding_of(const SettingPair& p, const std::string& file) {
  Finding f;
  f.matched = p.matched;
  if (p.a) f.a_name = p.a->key, f.a_value = value_text(*p.a);
  if (p.b) f.b_name = p.b->key, f.b_value = value_text(*p.b);
  f.row = {"hyperparameters_" + file + ".json",
           p.a ? f.a_name : "Only in comparison",
           p.b ? f.b_name : "Only in benchmark",
           f.a_value,
           f.b_value,
           msprobe_word(p.matched)};
  if (!p.a || !p.b) {
    const Setting& s = p.a ? *p.a : *p.b;
    if (s.is_default || is_harmless(s)) return f;  // that side was not told anything either
    f.level = Level::Warning;
    f.advice = std::string(p.a ? "B" : "A") + " does not say it: check what it is there";
    return f;
  }
  if (same_value(*p.a, *p.b)) return f;
  f.level = is_harmless(*p.a) || is_harmless(*p.b) ? Level::Warning : Level::Error;
  f.advice = advice_of(p, f.a_value, f.b_value);
  return f;
}

}  // namespace

Section check_settings(const Side& a, const Side& b) {
  Section section{"hyperparameters", {}};
  for (const auto& [file, settings] : a.settings) {
    const auto other = b.settings.find(file);
    if (other == b.settings.end()) continue;
    for (const SettingPair& p : pair_settings(settings, other->second))
      section.findings.push_back(finding_of(p, file));
  }
  return section;
}

std::vector<Section> check_sides(const Side& a, const Side& b) {
  std::vector<Section> all;
  for (Section (*check)(const Side&, const Side&) :
       {check_environment, check_packages, check_batches, check_weights, check_settings,
        check_random}) {
    Section section = check(a, b);
    if (!section.findings.empty()) all.push_back(std::move(section));
  }
  return all;
}

}  // namespace aloft::config_check
