// Hyper-parameters of two sides.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>

#include "base/text.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/schedule_forms.h"
#include "observe/config_check/setting_forms.h"
#include "observe/config_check/setting_pairs.h"
#include "observe/config_check/setting_values.h"
#include "observe/config_check/unset_values.h"

namespace aloft::config_check {

namespace {

constexpr std::string_view kHarmless[] = {
#define HARMLESS(pattern) pattern,
#include "observe/config_check/harmless.inc"
#undef HARMLESS
};
struct Perhaps {
  std::string_view pattern, advice;
};
constexpr Perhaps kPerhaps[] = {
#define PERHAPS(pattern, advice) {pattern, advice},
#include "observe/config_check/perhaps_harmless.inc"
#undef PERHAPS
};
// What says when, and on how much, a run is evaluated.
constexpr std::string_view kOfEvaluations[] = {"*eval_*", "eval*", "val_*", "valid*"};
// Keys of a recipe that say when a run ends.
constexpr std::string_view kEnds[] = {"train.epochs", "train.patience", "train.steps"};

bool is_any_of(std::span<const std::string_view> patterns, std::string_view name) {
  return std::ranges::any_of(patterns,
                             [&](std::string_view pattern) { return glob_match(pattern, name); });
}

// Whether nothing that is learnt depends on it, as it says or by its name.
bool is_harmless(const Setting& s) {
  return s.is_harmless.value_or(is_any_of(kHarmless, last_part(s.key)));
}

// What to think of where only a program's own text would say whether it matters; "" of others.
std::string_view perhaps_harmless(const Setting& s) {
  if (s.is_harmless) return "";
  const std::string name = last_part(s.key);
  const auto it = std::ranges::find_if(
      kPerhaps, [&](const Perhaps& one) { return glob_match(one.pattern, name); });
  return it == std::end(kPerhaps) ? "" : it->advice;
}

constexpr std::string_view kNothing = "nothing that is learnt depends on it";

// Whether what a run learns goes by its evaluations: a rate that falls where losses do not, the
// best of the models kept.
bool follows_evaluations(const std::vector<Setting>& settings) {
  return std::ranges::any_of(settings, [](const Setting& s) {
    if (is_harmless(s) || names_a_place(s.key)) return false;
    const std::string value = lower(value_text(s));
    return value.find("plateau") != std::string::npos ||
           (last_part(s.key) == "load_best_model_at_end" && value == "true");
  });
}

bool says_when_it_ends(const SettingPair& p) {
  return std::ranges::any_of(
      kEnds, [&](std::string_view key) { return p.a->key == key || p.b->key == key; });
}

// What a recipe says of where its data lies.
bool is_of_data(const Setting& s) {
  return s.is_harmless == true && s.key.starts_with("data.") && s.key != "data.cache";
}

// Whether two settings name what a model is taken from: a folder, or a model of a hub.
bool names_models(const SettingPair& p) {
  return p.a && p.b && common_name(p.a->key) == "model_name_or_path" &&
         common_name(p.b->key) == "model_name_or_path";
}

// "gpt2" of "models/gpt2/" and "openai-community/gpt2".
std::string model_called(const Setting& s) {
  std::string text = value_text(s);
  while (text.ends_with('/')) text.pop_back();
  return text.substr(text.rfind('/') + 1);
}

// Two sides' settings of one file, and what bears on the meaning of each of them.
struct Context {
  std::string file;
  bool follows_evaluations = false;
  bool has_batches = false;  // both sides': they say what the data is
  bool are_recipes = false;  // both: what is not there is not so
  std::optional<std::int64_t> update =
      {};                  // how many examples an update has, on both sides as many
  std::string model = {};  // the folder of one, where the other side names the same model
};

// How many examples an update has, over its micro-batches; nothing where a side does not say it.
std::optional<std::int64_t> examples_an_update(const std::vector<Setting>& settings) {
  constexpr std::string_view kParts[] = {"batch_size", "gradient_accumulation_steps"};
  constexpr std::int64_t kMost = 1 << 30;
  std::int64_t all = 1;
  for (const std::string_view name : kParts) {
    const auto it =
        std::ranges::find(settings, name, [](const Setting& s) { return common_name(s.key); });
    std::string text = it == settings.end() ? "" : value_text(*it);
    if (it == settings.end())
      if (const auto taken = default_of(settings, {std::string(name), nullptr}))
        text = std::string(taken->value);
    const auto count = parse_int(text);
    if (!count || *count < 1 || *count > kMost) return std::nullopt;
    all *= *count;
  }
  return all;
}

// Whether two settings say how an update is cut into micro-batches.
bool says_how_it_is_cut(const SettingPair& p) {
  const std::string_view name = common_name(p.a->key);
  return name == "batch_size" || name == "gradient_accumulation_steps";
}

// Where two settings differ: why that is harmless; "" where it is not, or is not known to be.
std::string why_harmless(const SettingPair& p, const Context& c) {
  if (p.a->is_harmless == false || p.b->is_harmless == false) return "";
  // Of another program's run nobody knows whether its rate goes by its length.
  if (says_when_it_ends(p))
    return p.a->is_harmless && p.b->is_harmless
               ? "one run may end before the other; up to there nothing depends on it"
               : "";
  if (!is_harmless(*p.a) && !is_harmless(*p.b)) return "";
  for (const Setting* const s : {p.a, p.b}) {
    if (c.follows_evaluations && is_any_of(kOfEvaluations, last_part(s->key))) return "";
    if (is_of_data(*s) && !c.has_batches) return "";
  }
  if (is_of_data(*p.a) || is_of_data(*p.b)) return "the batches that come of it are compared";
  return std::string(kNothing);
}

std::string advice_of(const SettingPair& p, const std::string& x, const std::string& y,
                      const Context& c) {
  const bool is_one = p.a->key == p.b->key;
  std::string text =
      "set A's " + p.a->key + " to " + y + ", or B's " + (is_one ? "" : p.b->key + " ") + "to " + x;
  if (p.matched.starts_with("similar"))
    text += "; where the two are not one setting, give each side the one that it lacks";
  if (says_when_it_ends(p)) return "the schedule of the learning rate may span the run: " + text;
  if (names_a_place(p.a->key) || names_a_place(p.b->key) || is_of_data(*p.a) || is_of_data(*p.b))
    return "other data or weights may lie there: see that they are the same, or " + text;
  for (const Setting* const s : {p.a, p.b})
    if (c.follows_evaluations && is_any_of(kOfEvaluations, last_part(s->key)))
      return "what is learnt goes by evaluations: " + text;
  return text;
}

// How the two names were found to be one, in msprobe's words.
std::string msprobe_word(const std::string& matched) {
  if (matched == "name") return "pure name";
  if (matched == "synonym") return "mapping";
  constexpr std::string_view kSimilar = "similar ";
  return matched.starts_with(kSimilar) ? "similarity:" + matched.substr(kSimilar.size()) : matched;
}

std::string as_written(const Setting& s) { return s.written.empty() ? value_text(s) : s.written; }

// "null (1000)": as it is written, with what counts.
std::string shown(const Setting& s) {
  if (!s.decided_by.empty()) return s.written;
  const std::string written = as_written(s), value = value_text(s);
  return written == value ? value : written + " (" + value + ")";
}

// Of two settings of which one at least has no value of its own: what to see to.
void judge_undecided(const SettingPair& p, Finding& f) {
  if (common_name(p.a->key) == "seed") {
    f.level = p.a->decided_by.empty() || p.b->decided_by.empty() ? Level::Error : Level::Warning;
    f.advice = "without a seed each start draws other numbers: give both one";
    return;
  }
  if (!p.a->decided_by.empty() && !p.b->decided_by.empty()) return;
  const bool is_a = !p.a->decided_by.empty();
  const Setting &open = is_a ? *p.a : *p.b, &other = is_a ? *p.b : *p.a;
  f.level = Level::Warning;
  f.advice = std::string(is_a ? "A" : "B") + "'s " + open.key + " is not set, " + open.decided_by +
             " decides: see that it comes to " + value_text(other);
}

Finding finding_of(const SettingPair& p, const Context& c) {
  Finding f;
  f.matched = p.matched;
  if (p.a) f.a_name = p.a->key, f.a_value = shown(*p.a);
  if (p.b) f.b_name = p.b->key, f.b_value = shown(*p.b);
  f.row = {"hyperparameters_" + c.file + ".json", p.a ? f.a_name : "Only in comparison",
           p.b ? f.b_name : "Only in benchmark",  p.a ? as_written(*p.a) : "",
           p.b ? as_written(*p.b) : "",           msprobe_word(p.matched)};
  if (!p.a || !p.b) {
    const Setting& s = p.a ? *p.a : *p.b;
    if (is_harmless(s)) return f;
    const std::string other = p.a ? "B" : "A";
    const bool is_known = c.are_recipes && s.is_harmless == false;
    f.level = is_known ? Level::Error : Level::Warning;
    f.advice = is_known ? other + " has none: give it the same, or leave it out"
                        : other + " does not say it: check what it is there";
    return f;
  }
  if (!p.a->decided_by.empty() || !p.b->decided_by.empty()) {
    judge_undecided(p, f);
    return f;
  }
  if (same_value(*p.a, *p.b)) return f;
  if (names_models(p) && model_called(*p.a) == model_called(*p.b)) {
    f.level = Level::Warning;
    f.advice = "called alike: see that they are the same weights, with the same config.json";
    return f;
  }
  f.advice = why_harmless(p, c);
  if (f.advice == kNothing) return f;
  if (c.update && says_how_it_is_cut(p))
    f.advice =
        std::to_string(*c.update) +
        " examples an update on both sides, cut into other micro-batches: sums are rounded "
        "otherwise, and what is drawn or averaged within one (dropout, batch norms, means of "
        "masked losses) may be other";
  // DeepSpeed's word for what the program that starts it fills in.
  constexpr std::string_view kAuto = "auto";
  if (f.advice.empty() && (f.a_value == kAuto || f.b_value == kAuto))
    f.advice = std::string(f.a_value == kAuto ? "A" : "B") +
               " takes it from the program that starts it: check what it is there";
  if (f.advice.empty()) f.advice = perhaps_harmless(*p.a);
  if (f.advice.empty()) f.advice = perhaps_harmless(*p.b);
  f.level = f.advice.empty() ? Level::Error : Level::Warning;
  if (f.advice.empty()) f.advice = advice_of(p, value_text(*p.a), value_text(*p.b), c);
  for (const Setting* const s : {p.a, p.b})
    if (!s->note.empty()) f.advice += std::string(s == p.a ? "; A's " : "; B's ") + s->note;
  return f;
}

// What one side alone says; nothing where that is none, or a default that nobody has set. Where the
// other's program is known, what it takes says whether the two are one.
std::optional<Finding> finding_of_one(const SettingPair& p, const Context& c,
                                      const std::vector<Setting>& a,
                                      const std::vector<Setting>& b) {
  const Setting& s = p.a ? *p.a : *p.b;
  if (!s.decided_by.empty() || is_none(s)) return std::nullopt;
  if (!c.model.empty() && s.place.starts_with(c.model + "/")) return std::nullopt;
  const auto other = default_of(p.a ? b : a, s);
  bool is_same = false;
  if (other) {
    Setting taken{s.key, other->value};
    taken.is_untyped = true;
    is_same = same_value(s, taken);
  }
  if (s.is_default && (!other || is_same)) return std::nullopt;
  Finding f = finding_of(p, c);
  if (!other) return f;
  f.level = is_same ? Level::Pass : Level::Warning;
  f.advice = std::string(p.a ? "B" : "A") + " does not say it: " + std::string(other->program) +
             " takes " + std::string(other->value) + " unless it is told";
  return f;
}

// Two settings that say one thing in other words.
Finding of_synonyms(const std::string& file, const std::string& a_name, const std::string& a_value,
                    const std::string& b_name, const std::string& b_value) {
  Finding f;
  f.matched = "synonym";
  f.a_name = a_name, f.b_name = b_name;
  f.a_value = a_value, f.b_value = b_value;
  f.row = {"hyperparameters_" + file + ".json",
           a_name,
           b_name,
           a_value,
           b_value,
           msprobe_word(f.matched)};
  return f;
}

// Warm-ups, one of which is a share.
Finding finding_of(const Warmups& w, const std::string& file) {
  Finding f = of_synonyms(file, w.a.key, w.a_value, w.b.key, w.b_value);
  if (w.are_equal == true) return f;
  f.level = w.are_equal ? Level::Error : Level::Warning;
  f.advice = w.are_equal ? "give both a warm-up of as many steps" : w.advice;
  return f;
}

// The types that the two compute in, where they say it in other words.
Finding finding_of(const std::pair<ComputeType, ComputeType>& types, const std::string& file) {
  const auto& [a, b] = types;
  Finding f = of_synonyms(file, a.said.key, a.value, b.said.key, b.value);
  if (a.type == b.type) return f;
  f.level = Level::Error;
  f.advice = "A computes in " + a.type + ", B in " + b.type + ": set both to one type";
  return f;
}

}  // namespace

Section check_settings(const Side& a, const Side& b) {
  Section section{"hyperparameters", {}};
  for (const auto& [file, settings] : a.settings) {
    const auto other = b.settings.find(file);
    if (other == b.settings.end()) continue;
    Context c{file, follows_evaluations(settings) || follows_evaluations(other->second),
              !a.batches.empty() && !b.batches.empty(),
              is_of_recipe(settings) && is_of_recipe(other->second)};
    auto [ours, theirs] = in_one_form(settings, other->second);
    c.update = examples_an_update(ours);
    if (c.update != examples_an_update(theirs)) c.update.reset();
    if (const auto types = take_compute_types(ours, theirs))
      section.findings.push_back(finding_of(*types, file));
    if (const auto warmups = take_warmups(ours, theirs))
      section.findings.push_back(finding_of(*warmups, file));
    const std::vector<SettingPair> pairs = pair_settings(ours, theirs);
    std::set<std::string> said;  // with what it decides
    for (const SettingPair& p : pairs)
      if (p.a && p.b)
        for (const Setting* const s : {p.a, p.b}) said.insert(s->decided_by);
    for (const SettingPair& p : pairs)
      if (names_models(p) && model_called(*p.a) == model_called(*p.b))
        c.model = value_text(p.a->key == "model.init" ? *p.a : *p.b);
    for (const SettingPair& p : pairs)
      if (p.a && p.b)
        section.findings.push_back(finding_of(p, c));
      else if (!said.contains(said_by(p.a ? *p.a : *p.b)))
        if (auto one = finding_of_one(p, c, settings, other->second))
          section.findings.push_back(std::move(*one));
  }
  return section;
}

std::vector<Section> check_sides(const Side& a, const Side& b) {
  std::vector<Section> all;
  for (Section (*check)(const Side&, const Side&) :
       {check_settings, check_random, check_environment, check_packages, check_batches,
        check_weights}) {
    Section section = check(a, b);
    if (!section.findings.empty()) all.push_back(std::move(section));
  }
  return all;
}

}  // namespace aloft::config_check
