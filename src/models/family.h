// A family of models: its settings, its published sizes, and how a model is made of them, each said
// once. Recipes, `aloft recipes`, run.json, checkpoints and folders of Hugging Face follow from it.
// catalog.inc lists the families of the library; add_family() takes a program's own.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/model.h"
#include "types/setting.h"

namespace aloft::models {

// What a setting is besides its key and value.
struct SettingRole {
  bool is_of_data = false;  // 0 in a recipe: as the data has it (vocab, classes)
  bool may_exceed = false;  // the data's value is the least, not the only one (vocab)
  bool may_change = false;  // a run may go on with another value
  // What another value means for a run that goes on, or why it cannot; empty: its weights would
  // mean something else.
  std::string_view resumed = {};
  bool is_of_start = false;  // it decides the first weights alone, and describes no trained model
  // In config.json of transformers: its name, an older one, what is assumed where it is missing.
  std::string_view published = {}, published_before = {};
  std::optional<SettingValue> assumed = {};
  // What null stands for there, and is written as.
  std::optional<SettingValue> null_is = {};
  bool only_if_other = false;  // it is written only where it is not what is assumed
  // Other words of that file, and ours that mean the same.
  std::vector<std::pair<std::string_view, std::string_view>> synonyms = {};
  // A list of whole numbers stands there as a list of these words, counted from 0.
  std::vector<std::string_view> words = {};
  // Names under which it is written there, and never read: what a folder's weights are made for
  // does not decide how they are trained further.
  std::vector<std::string_view> written = {};
  // It is true where the file has this parameter; config.json does not say.
  std::string_view shown_by = {};
  // What 0 stands for: it follows from the other settings.
  std::int64_t (*derived)(const SettingValues&) = nullptr;
};

// What another dropout means for a run that goes on.
inline constexpr std::string_view kOtherDropout =
    "so much is left out in every step; the weights go on as they are";

struct ModelSetting : Setting {
  SettingRole role;
};

// One of a config's fields(): a ModelSetting and the member that holds its value. The library's
// configs have them in a template, which programs that never ask for settings do not compile.
template <class C, class T>
struct ConfigField {
  std::string_view key;
  T C::*member;
  Limits limits;
  std::string_view meaning;
  SettingRole role;
};
template <class C, class T>
ConfigField<C, T> setting(std::string_view key, T C::*member, Limits limits,
                          std::string_view meaning, SettingRole role = {}) {
  return {key, member, std::move(limits), meaning, std::move(role)};
}

// A published size: names, the first of which is shown, and what it sets.
struct ModelSize {
  std::vector<std::string_view> names;
  SettingValues settings;
};

// Settings that do not fit together: the key to blame, and why. In the text "{dim}" stands for the
// value of dim, and "{?dim}" for where that is from, where it is not said itself.
struct Misfit {
  std::string_view key;
  std::string text;
};

// How transformers keeps a model of the family, besides the settings' names. Names are patterns.
struct PublishedForm {
  std::string_view model_type;    // "gpt2"; empty: there is none
  std::string_view architecture;  // "GPT2LMHeadModel"
  std::string_view prefix;        // of names in files, which may be missing: "transformer."
  std::vector<std::string_view> without_prefix = {"lm_head.weight"};
  std::vector<std::string_view> transposed = {};  // stored as [in, out], where the file does so
  std::vector<std::string_view> ignored = {};     // tensors that are no parameters
  // Keys that must have one of some values, as JSON; the first is what is written and assumed.
  struct Fixed {
    std::string_view key;
    std::vector<std::string_view> values;
    bool is_read_only = false;  // a list, of each layer's value: not written
    // What transformers takes it for where the file does not have it, not even as null, and what is
    // refused then; empty: one of the values.
    std::string_view missing = {};
  };
  std::vector<Fixed> fixed = {};
  // Keys that say once more what follows from settings.
  struct Derived {
    std::string_view key;
    std::int64_t (*value)(const SettingValues&);
  };
  std::vector<Derived> derived = {};
  // Keys under other names, which versions of transformers differ in: an ending "*" of both stands
  // for the same rest. Where both are in a file, they must say the same.
  struct Renamed {
    std::string_view from, to;
  };
  std::vector<Renamed> renamed = {};
  // A tensor `to` of ours, in files, is `from` too; a leading "*" of both stands for the same.
  std::vector<Renamed> renamed_tensors = {};
  std::vector<std::string_view> harmless = {};  // keys that change no result, besides the usual
  std::vector<std::string_view> zeros = {};     // written as 0, where transformers assumes another
  // Patterns, each of parameters that a file may lack together: a head, for what was trained
  // without one. They begin as those of a new model.
  std::vector<std::string_view> fresh = {};
};

struct ModelFamily {
  std::string_view name, meaning;
  bool is_usual =
      false;  // what a recipe and a bench begin with where they name none: one family is
  std::vector<ModelSetting> settings;
  std::vector<ModelSize> sizes;
  // Exactly one is there, and takes values of all settings. UserErrors of the model's class.
  std::function<std::unique_ptr<CausalLm>(const SettingValues&)> make_causal_lm;
  std::function<std::unique_ptr<Classifier>(const SettingValues&)> make_classifier;
  // Nothing where the settings fit together. Values are within their limits, but those of the data
  // may be 0: not known.
  std::function<std::optional<Misfit>(const SettingValues&)> misfit;
  // Numbers that a step keeps of an example for the gradient, at least; absent: nobody knows.
  std::function<double(const SettingValues&)> least_kept;
  PublishedForm published;
  // What data would say, where there is none: for benches. Every setting of the data is in it that
  // has no fallback of its own.
  SettingValues made_up;

  const ModelSetting* find(std::string_view key) const;  // null where there is none
  const ModelSize* size(std::string_view name) const;    // null where there is none
  // What a recipe begins with: the settings' fallbacks.
  SettingValues defaults() const;
};

// Every family: those of the catalogue in its order, behind them those that add_family() took. Each
// stays where it is.
const std::deque<ModelFamily>& families();
// Whether it makes classifiers of texts (text_classifier.h): those that have a vocabulary.
bool reads_text(const ModelFamily& family);
// Takes a family of the program's own: recipes train it and know its settings as keys, its
// checkpoints say its name. For the start of a program, before it reads a recipe or a checkpoint;
// not while another thread may. Its texts outlive the program's use of it. UserError E0212 where it
// cannot be one: a name, a size or a key that is there already or is no word of a-z, 0-9, _ (- in a
// size); a setting whose fallback is outside its limits, or that config.json names without saying
// what is assumed, or of the data with neither a fallback nor a value in made_up; a size that sets
// what it cannot; not exactly one of make_causal_lm and make_classifier; a model_type that is there
// already. Nothing was taken then.
const ModelFamily& add_family(ModelFamily family);
// Null where there is none of the name.
const ModelFamily* find_family(std::string_view name);
// The one that is_usual.
const ModelFamily& usual_family();
// The family of a published size; null where there is none.
const ModelFamily* family_of_size(std::string_view size);

// Every name of every size.
std::vector<std::string> names_of_sizes(const ModelFamily& family);

// The settings of a family's size; what it does not say is as in defaults(). UserError E0712, with
// the nearest name, where the family has none of the name.
SettingValues settings_of_size(const ModelFamily& family, std::string_view size);

// Inside: UserErrors E0212 of a family that says a key's value is of another kind than the
// config's, or something of a key that the config does not have.
[[noreturn]] void refuse_kind(std::string_view key, const SettingValue& saw,
                              const SettingValue& need);
[[noreturn]] void refuse_key(std::string_view family, std::string_view key);

// The values of a config, and the config of values: what is not given keeps the struct's default.
template <class C>
SettingValues values_of(const C& config) {
  SettingValues out;
  C::fields().each([&](const auto& f) { out.emplace(f.key, config.*(f.member)); });
  return out;
}
template <class C>
C config_of(const SettingValues& values) {
  C config;
  const auto take = [&](const auto& f) {
    const auto it = values.find(f.key);
    if (it == values.end()) return;
    const auto* value = std::get_if<std::remove_cvref_t<decltype(config.*(f.member))>>(&it->second);
    if (!value) refuse_kind(f.key, it->second, SettingValue(config.*(f.member)));
    config.*(f.member) = *value;
  };
  C::fields().each(take);
  return config;
}

// A family of the model M, made of a C. `usual` is what a recipe begins with where that is not the
// struct's default. The caller adds sizes, misfit and the rest. UserError E0212 for a key in
// `usual` that is none of C's.
template <class C, class M>
ModelFamily family_of(std::string_view name, std::string_view meaning,
                      const SettingValues& usual = {}) {
  ModelFamily out;
  out.name = name;
  out.meaning = meaning;
  const C first;
  const auto add = [&](const auto& f) {
    const auto it = usual.find(f.key);
    out.settings.push_back(
        {{f.key, it == usual.end() ? SettingValue(first.*(f.member)) : it->second, f.limits,
          f.meaning},
         f.role});
  };
  C::fields().each(add);
  for (const auto& [key, value] : usual)
    if (!out.find(key)) refuse_key(name, key);
  const auto make = [](const SettingValues& v) { return std::make_unique<M>(config_of<C>(v)); };
  if constexpr (std::is_base_of_v<CausalLm, M>)
    out.make_causal_lm = make;
  else
    out.make_classifier = make;
  return out;
}

}  // namespace aloft::models
