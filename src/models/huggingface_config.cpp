#include "models/huggingface_config.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "models/misfit_text.h"
#include "models/setting_json.h"

namespace aloft::models {
namespace {

using Json = nlohmann::json;

// What every model of transformers may say without a change of what it computes: names, types of
// files, ids of tokens, what generation is to do.
constexpr std::string_view kHarmless[] = {
    "_name_or_path", "_attn_implementation*", "attn_implementation", "architectures", "auto_map.*",
    "begin_suppress_tokens", "bos_token_id", "decoder_start_token_id", "dtype", "eos_token_id",
    "finetuning_task", "gradient_checkpointing", "num_labels", "id2label.*", "initializer_range",
    "label2id.*", "model_type", "output_attentions", "output_hidden_states", "output_past",
    "output_scores", "pad_token_id", "prefix", "problem_type", "return_dict",
    "return_dict_in_generate", "sep_token_id", "suppress_tokens", "task_specific_params.*",
    "tokenizer_class", "torch_dtype", "torchscript", "transformers.js_config.*",
    "transformers_version", "unsloth_fixed", "unsloth_version", "use_bfloat16", "use_cache",
    // of generation, in files of before it had one of its own
    "bad_words_ids", "diversity_penalty", "do_sample", "early_stopping",
    "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id",
    "forced_eos_token_id", "length_penalty", "max_length", "min_length", "no_repeat_ngram_size",
    "num_beam_groups", "num_beams", "num_return_sequences", "remove_invalid_values",
    "repetition_penalty", "temperature", "top_k", "top_p", "typical_p"};

// What any model of transformers may be besides a plain one, and must not be here.
const PublishedForm::Fixed kPlain[] = {{"add_cross_attention", {"false"}},
                                       {"chunk_size_feed_forward", {"0"}},
                                       {"is_decoder", {"false"}},
                                       {"is_encoder_decoder", {"false"}},
                                       {"tie_encoder_decoder", {"false"}}};

// Nothing is said by them: null, {}, [].
bool is_empty(const Json& value) {
  return value.is_null() || (value.is_structured() && value.empty());
}

// {"a": {"b": 1}} -> {"a.b": 1}; what is empty is left out.
void flatten(const Json& object, const std::string& prefix, std::map<std::string, Json>& into) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object())
      flatten(value, prefix + key + ".", into);
    else if (!is_empty(value))
      into[prefix + key] = value;
  }
}

class Reader {
 public:
  explicit Reader(const Path& path) : path_(path) {
    constexpr std::uint64_t kLimit = 1 << 20;
    const Json json = parse_json(read_file(path, kLimit));
    if (!json.is_object()) throw wrong("it is not a JSON object", "an object of settings");
    flatten(json, "", keys_);
    for (const auto& [key, value] : json.items())
      if (value.is_null()) nulls_.insert(key);
  }

  ModelSpec read() {
    spec_.family = &family();
    rename();
    count_labels();
    for (const ModelSetting& s : spec_.family->settings) spec_.settings.emplace(s.key, value_of(s));
    if (spec_.family->misfit)
      if (const auto misfit = spec_.family->misfit(spec_.settings))
        throw wrong(published_name(misfit->key) + text_of(*misfit, spec_.settings),
                    "settings that fit together");
    for (const auto& fixed : kPlain) check(fixed);
    for (const auto& fixed : spec_.family->published.fixed) check(fixed);
    for (const auto& derived : spec_.family->published.derived) check(derived);
    for (const auto& [key, value] : keys_)
      if (!is_harmless(key))
        throw wrong(as_written(key) + " is " + json_text(value) + ", which is not known here",
                    "keys of a plain " + std::string(spec_.family->name) +
                        ": this one could change what the model computes");
    return std::move(spec_);
  }

 private:
  DataError wrong(const std::string& saw, const std::string& need) const {
    return DataError("E0631", "config.json does not describe a model that can be loaded")
        .at(path_.string())
        .saw(saw)
        .need(need);
  }

  const ModelFamily& family() {
    const auto it = keys_.find("model_type");
    const std::string type =
        it != keys_.end() && it->second.is_string() ? it->second.get<std::string>() : "";
    std::string known;
    for (const ModelFamily& f : families()) {
      if (f.published.model_type.empty()) continue;
      if (f.published.model_type == type) return f;
      known += (known.empty() ? "" : ", ") + std::string(f.published.model_type);
    }
    throw wrong("model_type is " + in_quotes(type), "model_type one of " + known);
  }

  // Answers are counted by their names where nothing says their number.
  void count_labels() {
    const bool has_classes = std::ranges::any_of(spec_.family->settings, [](const ModelSetting& s) {
      return s.role.published == "num_labels";
    });
    const auto labels = std::ranges::count_if(
        keys_, [](const auto& entry) { return entry.first.starts_with("id2label."); });
    if (!has_classes || labels == 0) return;
    const auto [said, is_new] = keys_.emplace("num_labels", labels);
    if (!is_new && said->second != labels)
      throw wrong("num_labels is " + json_text(said->second) + ", and id2label names " +
                      std::to_string(labels),
                  "the same, or one of them");
  }

  // Gives keys the names that the family's settings have.
  void rename() {
    const std::map<std::string, Json> written = keys_;
    for (const auto& [key, value] : written)
      for (const auto& renamed : spec_.family->published.renamed)
        if (const auto name = name_of(key, renamed)) {
          keys_.erase(key);
          written_.try_emplace(*name, key);
          const auto [other, is_new] = keys_.emplace(*name, value);
          if (!is_new && other->second != value)
            throw wrong(
                key + " is " + json_text(value) + ", " + *name + " " + json_text(other->second),
                "the same, or one of them");
          break;
        }
  }
  static std::optional<std::string> name_of(std::string_view key,
                                            const PublishedForm::Renamed& renamed) {
    std::string_view from = renamed.from, to = renamed.to;
    if (!from.ends_with('*')) return key == from ? std::optional<std::string>(to) : std::nullopt;
    from.remove_suffix(1), to.remove_suffix(1);
    if (!key.starts_with(from)) return std::nullopt;
    return std::string(to) + std::string(key.substr(from.size()));
  }

  // As the file has it: rename() gives keys other names.
  std::string as_written(std::string_view key) const {
    const auto it = written_.find(std::string(key));
    return it == written_.end() ? std::string(key) : it->second;
  }

  // "layer_types: ", of a setting that the file has a name for.
  std::string published_name(std::string_view key) const {
    const ModelSetting* setting = spec_.family->find(key);
    if (!setting || setting->role.published.empty()) return "";
    return as_written(setting->role.published) + ": ";
  }

  // Takes a key away, so that what is left is what nobody knows.
  std::optional<Json> take(std::string_view key) {
    const auto it = keys_.find(std::string(key));
    if (it == keys_.end()) return std::nullopt;
    Json value = std::move(it->second);
    keys_.erase(it);
    return value;
  }

  SettingValue value_of(const ModelSetting& s) {
    const SettingRole& role = s.role;
    if (role.published.empty()) return s.fallback;
    std::string_view key = role.published;
    std::optional<Json> found = take(key);
    if (!role.published_before.empty()) {
      std::optional<Json> before = take(role.published_before);
      if (found && before && *found != *before)
        throw wrong(as_written(key) + " is " + json_text(*found) + ", " +
                        as_written(role.published_before) + " " + json_text(*before),
                    "the same, or one of them");
      if (!found && before) found = std::move(before), key = role.published_before;
    }
    if (!found && role.null_is && nulls_.contains(key)) return *role.null_is;
    if (!found && role.derived && nulls_.contains(key)) return std::int64_t{0};
    if (!found) return *role.assumed;
    std::optional<SettingValue> value = setting_of_json(in_our_words(*found, role));
    // 0 is ours: it stands for what follows from the others.
    Setting strict = s;
    if (role.derived) strict.limits.least = 1;
    const std::string need = value ? need_of(strict, *value) : "a value of its kind";
    if (!need.empty()) throw wrong(as_written(key) + " is " + json_text(*found), need);
    return *value;
  }

  // A word, or a list of words, as the setting has it; what it does not know stays.
  static Json in_our_words(Json value, const SettingRole& role) {
    const auto is_word = [](const Json& j, std::string_view word) {
      return j.is_string() && j.get_ref<const std::string&>() == word;
    };
    for (const auto& [theirs, ours] : role.synonyms)
      if (is_word(value, theirs)) return std::string(ours);
    if (role.words.empty() || !value.is_array()) return value;
    for (Json& entry : value) {
      const auto it = std::find_if(role.words.begin(), role.words.end(),
                                   [&](std::string_view word) { return is_word(entry, word); });
      if (it != role.words.end()) entry = it - role.words.begin();
    }
    return value;
  }

  void check(const PublishedForm::Fixed& fixed) {
    const std::optional<Json> found = take(fixed.key);
    if (!found && (fixed.missing.empty() || nulls_.contains(fixed.key))) return;
    const std::string text = found ? json_text(*found) : std::string(fixed.missing);
    const auto is_right = [&](const Json& value) {
      return std::find(fixed.values.begin(), fixed.values.end(), json_text(value)) !=
             fixed.values.end();
    };
    const bool is_list = found && found->is_array();  // of layers, one each
    if (is_list && std::all_of(found->begin(), found->end(), is_right)) return;
    if (found && !is_list && is_right(*found)) return;
    std::string all;
    for (const std::string_view value : fixed.values)
      all += (all.empty() ? "" : " or ") + std::string(value);
    throw wrong(as_written(fixed.key) + (found ? " is " : " is missing, which means ") + text, all);
  }

  void check(const PublishedForm::Derived& derived) {
    const std::optional<Json> found = take(derived.key);
    const std::int64_t want = derived.value(spec_.settings);
    if (!found || *found == want) return;
    throw wrong(as_written(derived.key) + " is " + json_text(*found), std::to_string(want));
  }

  bool is_harmless(const std::string& key) const {
    const auto matches = [&](std::string_view pattern) { return glob_match(pattern, key); };
    const auto& own = spec_.family->published.harmless;
    return std::any_of(std::begin(kHarmless), std::end(kHarmless), matches) ||
           std::any_of(own.begin(), own.end(), matches);
  }

  Path path_;
  std::map<std::string, Json> keys_;
  std::map<std::string, std::string> written_;  // of renamed keys: what the file calls them
  std::set<std::string, std::less<>> nulls_;    // keys that say null
  ModelSpec spec_;
};

// Puts a value where a dotted key says.
void put(Json& into, std::string_view key, Json value) {
  const auto dot = key.find('.');
  Json& at = into[std::string(key.substr(0, dot))];
  if (dot == std::string_view::npos)
    at = std::move(value);
  else
    put(at, key.substr(dot + 1), std::move(value));
}

Json in_their_words(Json value, const SettingRole& role) {
  if (role.words.empty()) return value;
  for (Json& number : value) number = std::string(role.words.at(number.get<std::size_t>()));
  return value;
}

}  // namespace

ModelSpec read_huggingface_config(const Path& path) { return Reader(path).read(); }

Json huggingface_config(const ModelSpec& spec) {
  const PublishedForm& form = spec.family->published;
  Json out = {{"model_type", form.model_type}, {"architectures", {form.architecture}}};
  for (const auto& fixed : form.fixed)
    if (!fixed.is_read_only) put(out, fixed.key, parse_json(fixed.values.front()));
  for (const ModelSetting& s : spec.family->settings) {
    for (const std::string_view key : s.role.written) put(out, key, json_of(*spec.find(s.key)));
    if (s.role.published.empty()) continue;
    const SettingValue& value = *spec.find(s.key);
    if (s.role.only_if_other && value == *s.role.assumed) continue;
    if (s.role.derived)
      put(out, s.role.published, spec.whole(s.key));
    else if (value == s.role.null_is)
      put(out, s.role.published, nullptr);
    else
      put(out, s.role.published, in_their_words(json_of(value), s.role));
  }
  for (const std::string_view key : form.zeros) put(out, key, 0.0);
  return out;
}

}  // namespace aloft::models
