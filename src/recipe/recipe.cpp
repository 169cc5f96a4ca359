#include "recipe/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "models/misfit_text.h"
#include "passes/pipeline.h"
#include "precision/decide.h"
#include "precision/recipe_json.h"
#include "recipe/foreign_keys.h"
#include "recipe/model_meant.h"
#include "recipe/optimizer_mistakes.h"
#include "recipe/parse_recorded.h"
#include "recipe/recipe_fields.h"
#include "recipe/recipe_leaves.h"
#include "recipe/recipe_names.h"
#include "recipe/recipe_schedule.h"
#include "recipe/recipe_unused.h"
#include "recipe/tokenizer_keys.h"
#include "types/limits.h"

namespace aloft {
namespace {

using nlohmann::json;

class Reader {
 public:
  // `is_family_set`: the command line says which family the recipe is of.
  Reader(Recipe& recipe, bool is_family_set, bool is_recorded)
      : recipe_(recipe),
        fields_(recipe_fields(recipe)),
        is_family_set_(is_family_set),
        is_recorded_(is_recorded) {}

  void read(const Leaf& leaf) {
    if (leaf.key == "precision" || leaf.key.starts_with("precision.")) return precision(leaf);
    const auto it = std::find_if(fields_.begin(), fields_.end(),
                                 [&](const RecipeField& f) { return f.key == leaf.key; });
    if (const ForeignKey* foreign = foreign_key(leaf.key, recipe_.optimizer.kind);
        foreign && !is_of_kind(leaf.key) && !is_of_record(leaf))
      return explain(leaf, *foreign);
    if (it == fields_.end()) return unknown(leaf);
    own_given_[leaf.key] = leaf.origin;
    take(leaf, *it);
  }

  void take(const Leaf& leaf, const RecipeField& field) {
    const std::size_t before = mistakes_.size();
    std::visit([&](auto* target) { take(leaf, field, *target); }, field.target);
    if (mistakes_.size() == before) recipe_.origin[leaf.key] = leaf.origin;
  }

  void finish() {
    if (!precision_.empty()) finish_precision();
    check_model();
    check_task();
    check_tokenizer();
    check_length_of_examples();
    check_foreign();
    for (const KeyMistake& m : optimizer_mistakes(recipe_, mistakes_.empty()))
      mistake(origin(m.key), m.text);
    check_skipped_passes();
    check_patience();
    check_length();
    check_schedule();
    // Of a record that was asked when the run was made, whose command line may have switched off
    // what its file asked for; of that the record knows no more.
    for (const UnusedKey& u : unused_keys(recipe_))
      if (!is_recorded_ || origin(u.key) == kSetOrigin) mistake(origin(u.key), u.key + " " + u.why);
    if (mistakes_.empty()) return;
    std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const auto& a, const auto& b) {
      return line_of(a.first) < line_of(b.first);
    });
    UserError e("E0710", mistakes_.size() == 1
                             ? "the recipe has a mistake"
                             : fmt::format("the recipe has {} mistakes", mistakes_.size()));
    for (const auto& [where, text] : mistakes_) e.add_line(where, text);
    throw e;
  }

  void mistake(const std::string& where, const std::string& text) {
    mistakes_.emplace_back(where, text);
  }

 private:
  // Settings of the model that do not fit together; where one is from a size, that is said.
  void check_model() {
    const ModelSection& m = recipe_.model;
    const models::ModelFamily* family = models::find_family(m.family);
    if (!family || !family->misfit) return;
    const auto misfit = family->misfit(m.settings);
    if (!misfit) return;
    const auto is_sizes = [&](std::string_view key) {
      return origin("model." + std::string(key)).ends_with(kSizeOrigin);
    };
    const auto from = [&](std::string_view key) {
      return is_sizes(key) ? " of model.size " + m.size : "";
    };
    // Blamed is who was given by hand.
    std::string blamed = "model." + std::string(misfit->key);
    if (!recipe_.origin.contains(blamed) || is_sizes(misfit->key))
      for (const models::ModelSetting& s : family->settings)
        if (const std::string key = "model." + std::string(s.key);
            misfit->text.find("{" + std::string(s.key) + "}") != std::string::npos &&
            recipe_.origin.contains(key) && !is_sizes(s.key))
          blamed = key;
    mistake(origin(blamed),
            fmt::format("model.{}: {}", misfit->key, models::text_of(*misfit, m.settings, from)));
  }

  void check_task() {
    const TaskKind* kind = find_task(recipe_.task.kind);
    const models::ModelFamily* family = models::find_family(recipe_.model.family);
    if (!kind || !family || kind->takes(*family)) return;
    std::string could;
    for (const TaskKind& other : task_kinds())
      if (other.takes(*family)) could += (could.empty() ? "" : " or ") + std::string(other.name);
    mistake(origin("task.kind"), fmt::format("task.kind: a {} does not learn {}; need {}",
                                             family->name, kind->name, could));
  }

  // What a tokenizer cannot be made by, before any text is read.
  void check_tokenizer() {
    const auto [key, text] = tokenizer_mistake(recipe_.data);
    if (!key.empty()) mistake(origin(key), text);
  }

  // Windows that the model does not read.
  void check_length_of_examples() {
    const std::int64_t length = recipe_.data.length, context = recipe_.model.whole("context");
    if (length > context && context > 0)
      mistake(origin("data.length"),
              fmt::format("data.length: the model reads {} tokens (model.context); need at most so "
                          "many, got {}",
                          context, length));
    if (length > 0 && context == 0)
      mistake(
          origin("data.length"),
          fmt::format("data.length: a {} reads no sequences; leave it out", recipe_.model.family));
  }

  // One of the two would be lost; what the command line says beats the file.
  void check_foreign() {
    for (const auto& [key, foreign] : foreign_given_) {
      const auto own = own_given_.find(key);
      if (own == own_given_.end()) continue;
      if ((own->second == kSetOrigin) == (foreign.origin == kSetOrigin))
        mistake(foreign.origin, fmt::format("{}: {} ({}) says the same here; leave one of them out",
                                            foreign.key, key, own->second));
    }
  }

  void check_patience() {
    if (recipe_.train.patience > 0 && recipe_.train.eval_every == 0)
      mistake(origin("train.patience"),
              "train.patience: counts evaluations; need train.eval_every above 0");
    if (recipe_.schedule.kind == name_of(scalar::ScheduleKind::Plateau) &&
        recipe_.train.eval_every == 0)
      mistake(origin("schedule.kind"),
              "schedule.kind: plateau goes by evaluations; need train.eval_every above 0");
  }

  void check_skipped_passes() {
    const std::vector<std::string> optional = compile_pipeline().optional_passes();
    for (const std::string& name : recipe_.train.skip_passes)
      if (std::find(optional.begin(), optional.end(), name) == optional.end())
        mistake(origin("train.skip_passes"),
                fmt::format("train.skip_passes: '{}' is no pass that may be left out: one of: {}",
                            name, fmt::join(optional, ", ")));
  }

  // Steps or epochs: what the command line says beats the file, two of a kind are a mistake.
  void check_length() {
    if (recipe_.train.epochs <= 0 || !recipe_.origin.contains("train.steps")) return;
    const bool given = origin("train.epochs") == kSetOrigin;
    if (given == (origin("train.steps") == kSetOrigin)) {
      mistake(origin("train.epochs"),
              fmt::format("train.epochs: train.steps ({}) says how long the run is, too; leave one "
                          "of them out",
                          origin("train.steps")));
    } else if (given) {
      recipe_.train.steps = TrainSection{}.steps;
      recipe_.origin.erase("train.steps");
    } else {
      recipe_.train.epochs = 0;
      recipe_.origin.erase("train.epochs");
    }
  }

  // By the rule that the run will have, which is made of values that fit.
  void check_schedule() {
    if (!mistakes_.empty()) return;
    if (const auto problem = schedule_problem(recipe_))
      mistake(origin(problem->key), problem->saw + ": " + problem->need);
  }

  // "recipe.toml:12" -> 12; what has no line comes last.
  static std::int64_t line_of(const std::string& where) {
    const auto colon = where.rfind(':');
    const auto line = colon == std::string::npos
                          ? std::nullopt
                          : parse_int(std::string_view(where).substr(colon + 1));
    return line ? *line : std::numeric_limits<std::int64_t>::max();
  }

  void finish_precision() {
    std::vector<RecipeMistake> found;
    recipe_.precision = precision_of_json(precision_, found);
    const auto from = [&](const std::string& key) {
      const auto it = precision_origin_.find(key);
      return it == precision_origin_.end() ? precision_origin_[""] : it->second;
    };
    for (const RecipeMistake& m : found) mistake(from(m.key), "precision." + m.key + ": " + m.text);
    recipe_.origin["precision"] = precision_origin_[""];
    // A level may name the type: "O2:fp16".
    if (!precision_origin_.contains("type") && precision_origin_.contains("level"))
      precision_origin_["type"] = precision_origin_["level"];
    const json resolved = json_of(recipe_.precision);  // items() borrows it
    for (const auto& [key, value] : resolved.items())
      recipe_.origin["precision." + key] = from(key);
    if (!precision_.contains("level"))
      recipe_.origin["precision.level"] = "a [precision] that names no level, " + from("");
  }

  std::string origin(const std::string& key) const { return origin_of(recipe_, key); }

  // A text such as "O2:fp16", or "O2:bf16 backward=fp16 loss_scale=dynamic".
  json whole_precision(const Leaf& leaf) {
    if (!leaf.value.is_string()) return {{"level", leaf.value}};
    const auto text = leaf.value.get<std::string>();
    if (text.find(' ') == std::string::npos) return {{"level", text}};
    std::vector<RecipeMistake> found;
    const PrecisionRecipe parsed = parse_precision(text, found);
    for (const RecipeMistake& m : found) mistake(leaf.origin, "precision." + m.key + ": " + m.text);
    return found.empty() ? json_of(parsed) : json::object();
  }

  void precision(const Leaf& leaf) {
    // On the command line the order of options means nothing: there a level and a type that
    // contradict each other are a mistake, whichever comes first.
    const auto is_given = [&](const std::string& key) {
      return leaf.origin == kSetOrigin && precision_origin_.contains(key) &&
             precision_origin_.at(key) == kSetOrigin;
    };
    if (leaf.key == "precision") {
      if (leaf.value.is_object()) {
        precision_.update(leaf.value);
      } else {
        const json before = std::exchange(precision_, whole_precision(leaf));
        for (const auto& [key, value] : before.items())
          if (is_given(key) && !precision_.contains(key)) precision_[key] = value;
        std::erase_if(precision_origin_, [&](const auto& o) { return !is_given(o.first); });
      }
      precision_origin_[""] = leaf.origin;
      for (const auto& [key, origin] : leaf.inner) precision_origin_[key] = origin;
      return;
    }
    const std::string key = leaf.key.substr(std::string("precision.").size());
    // A level set on top of a recipe replaces the recipe's type, which a level may name itself.
    if (key == "level" && !is_given("type")) {
      precision_.erase("type");
      precision_origin_.erase("type");
    }
    precision_[key] = leaf.value;
    precision_origin_[key] = leaf.origin;
    if (!precision_origin_.contains("")) precision_origin_[""] = leaf.origin;
  }

  bool is_of_record(const Leaf& leaf) const { return is_recorded_ && leaf.origin != kSetOrigin; }
  bool is_of_kind(std::string_view key) const {
    const optim::OptimizerKind* kind = optim::find_optimizer_kind(recipe_.optimizer.kind);
    return kind && std::ranges::any_of(kind->settings, [&](const optim::OptimizerSetting& s) {
             return key == "optimizer." + std::string(s.key);
           });
  }

  // Taken, and explained: a recipe that was written for another system goes on to work.
  void explain(const Leaf& leaf, const ForeignKey& known) {
    if (!known.read_as.empty()) {
      log_warning("{}: {} is read as {}: {}", leaf.origin, leaf.key, known.read_as, known.why);
      Leaf own = leaf;
      own.key = known.read_as;
      foreign_given_[own.key] = leaf;
      return take(own, *std::ranges::find(fields_, own.key, &RecipeField::key));
    }
    if (!known.only.empty() && leaf.value != parse_json(known.only))
      return wrong(leaf, fmt::format("{} ({})", known.only, known.why));
    if (known.only.empty() && !leaf.value.is_boolean()) return wrong(leaf, "true or false");
    log_warning("{}: {} changes nothing: {}", leaf.origin, leaf.key, known.why);
  }

  void unknown(const Leaf& leaf) {
    if (const std::string whose = families_with(leaf.key); !whose.empty()) {
      // A family that the command line names leaves out what the file says of another.
      if (!is_family_set_ || leaf.origin == kSetOrigin)
        mistake(leaf.origin, fmt::format("{}: {} has no such key; {} has", leaf.key,
                                         recipe_.model.family, whose));
      return;
    }
    const std::string meant = meant_key(leaf.key, fields_);
    mistake(leaf.origin,
            leaf.key + ": no such key" + (meant.empty() ? "" : "; did you mean " + meant + "?"));
  }

  // JSON has no word for NaN and infinity.
  static std::string shown(const json& value) {
    if (value.is_number_float() && !std::isfinite(value.get<double>()))
      return fmt::format("{}", value.get<double>());
    return json_text(value);
  }

  void wrong(const Leaf& leaf, const std::string& need) {
    mistake(leaf.origin, fmt::format("{}: need {}, got {}", leaf.key, need, shown(leaf.value)));
  }

  // One key of a group as a leaf of its own: "optimizer.groups[1].lr".
  Leaf inside(const Leaf& leaf, std::size_t index, const std::string& key) const {
    const auto it = leaf.inner.find(std::to_string(index) + "." + key);
    return {fmt::format("{}[{}].{}", leaf.key, index, key),
            it == leaf.inner.end() ? leaf.origin : it->second,
            leaf.value[index].value(key, json()),
            {}};
  }

  ParameterGroup group(const Leaf& leaf, std::size_t index) {
    ParameterGroup out;
    std::vector<double> numbers(std::size(kGroupNumbers));
    std::vector<RecipeField> known{{OnResume::Changes, "parameters", "", &out.parameters}};
    for (std::size_t i = 0; i < numbers.size(); ++i)
      known.push_back({OnResume::Changes, std::string(kGroupNumbers[i].name), "", &numbers[i], 0,
                       kGroupNumbers[i].most});
    std::vector<std::string> names;
    names.reserve(known.size());
    for (const RecipeField& f : known) names.emplace_back(f.key);
    for (const auto& [key, value] : leaf.value[index].items()) {
      const Leaf one = inside(leaf, index, key);
      const auto at = std::find(names.begin(), names.end(), key) - names.begin();
      if (at < std::ssize(known)) {
        const RecipeField& f = known[static_cast<std::size_t>(at)];
        std::visit([&](auto* target) { take(one, f, *target); }, f.target);
        continue;
      }
      const std::string near = nearest_name(key, names);
      mistake(one.origin,
              one.key + ": no such key" +
                  (near.empty() ? "; need " + join(names, ", ") : "; did you mean " + near + "?"));
    }
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (leaf.value[index].contains(kGroupNumbers[i].name))
        out.*kGroupNumbers[i].member = numbers[i];
    return out;
  }

  void take(const Leaf& leaf, const RecipeField&, std::vector<ParameterGroup>& target) {
    const auto is_table = [](const json& v) { return v.is_object(); };
    if (!leaf.value.is_array() || !std::all_of(leaf.value.begin(), leaf.value.end(), is_table))
      return wrong(leaf, "a list of groups, [[optimizer.groups]]");
    target.clear();
    for (std::size_t i = 0; i < leaf.value.size(); ++i) {
      const std::size_t before = mistakes_.size();
      target.push_back(group(leaf, i));
      if (target.back().parameters.empty() && mistakes_.size() == before)
        mistake(inside(leaf, i, "parameters").origin,
                fmt::format("{}[{}].parameters: need at least one name pattern", leaf.key, i));
    }
  }

  template <class T>
  void take(const Leaf& leaf, const RecipeField& f, T& target) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!leaf.value.is_boolean()) return wrong(leaf, "true or false");
      target = leaf.value.get<bool>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!leaf.value.is_string()) return wrong(leaf, "a text");
      const auto text = leaf.value.get<std::string>();
      if (is_choice(leaf, f, text)) target = text;
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (std::is_integral_v<T> ? !leaf.value.is_number_integer() : !leaf.value.is_number())
        return wrong(leaf, std::is_integral_v<T> ? "a whole number" : "a number");
      const double v = leaf.value.get<double>();
      const Limits limits{f.least, f.most, f.is_below};
      if (limits.has_range() && !limits.admits(v))
        return wrong(leaf, fmt::format("{} to {}{}", f.least, f.is_below ? "below " : "", f.most));
      target = leaf.value.get<T>();
    } else {
      using E = typename T::value_type;
      json list = leaf.value;
      if (std::is_same_v<E, std::string> && list.is_string()) list = json::array({list});
      constexpr bool is_whole = std::is_same_v<E, std::int64_t>;
      const auto fits = [&](const json& v) {
        if (std::is_same_v<E, std::string>) return v.is_string();
        if (is_whole ? !v.is_number_integer() : !v.is_number()) return false;
        return f.least >= f.most || (v.get<double>() >= f.least && v.get<double>() <= f.most);
      };
      if (!list.is_array() || !std::all_of(list.begin(), list.end(), fits)) {
        const std::string range =
            f.least < f.most ? fmt::format(", each {} to {}", f.least, f.most) : "";
        return wrong(leaf, (std::is_same_v<E, std::string> ? "a list of texts"
                            : is_whole                     ? "a list of whole numbers"
                                                           : "a list of numbers") +
                               range);
      }
      if constexpr (std::is_same_v<E, std::string>)
        for (const json& word : list)
          if (!is_choice(leaf, f, word.get<std::string>())) return;
      target = list.get<T>();
    }
  }

  // Whether the key has the word; told where it has not.
  bool is_choice(const Leaf& leaf, const RecipeField& f, const std::string& text) {
    if (f.choices.empty() || (f.or_none && text.empty()) ||
        std::find(f.choices.begin(), f.choices.end(), text) != f.choices.end())
      return true;
    const std::vector<std::string> words(f.choices.begin(), f.choices.end());
    const std::string instead = leaf.key == "schedule.kind" ? schedule_instead_of(text) : "";
    const std::string near = nearest_name(text, words);
    if (!instead.empty())
      wrong(leaf, fmt::format("{}; kinds: {}", instead, join(words, ", ")));
    else
      wrong(leaf,
            "one of " + join(words, ", ") + (near.empty() ? "" : " (did you mean " + near + "?)"));
    return false;
  }

  Recipe& recipe_;
  std::vector<RecipeField> fields_;
  bool is_family_set_;
  bool is_recorded_;  // as a run was made by: what does nothing was looked at then, and every key
                      // is by its own name
  std::map<std::string, std::string> own_given_;  // keys that were read by their names, and where
  std::map<std::string, Leaf> foreign_given_;     // by the key that each was read as
  json precision_ = json::object();
  std::map<std::string, std::string> precision_origin_;
  std::vector<std::pair<std::string, std::string>> mistakes_;
};

// A key that the command line sets twice, by two options or by an option and --set: nobody can say
// which is meant.
void refuse_contradictions(const std::vector<Leaf>& leaves, Reader& reader) {
  std::map<std::string, json> given;
  for (const Leaf& leaf : leaves) {
    if (leaf.origin != kSetOrigin) continue;
    const bool is_level = leaf.key == "precision" && leaf.value.is_string();
    const std::string key = is_level ? "precision.level" : leaf.key;
    const auto [before, is_first] = given.try_emplace(key, leaf.value);
    if (!is_first && before->second != leaf.value)
      reader.mistake(leaf.origin, fmt::format("{}: the command line says {} and {}", key,
                                              json_text(before->second), json_text(leaf.value)));
  }
}

// A path given on the command line begins where the program was started, as in every program;
// only those of the file begin at the file. All are absolute from here on: a record or a message
// with both says where each lies.
void anchor_paths(Recipe& r) {
  const auto anchor = [&](const char* key, std::string& path) {
    const auto it = r.origin.find(key);
    if (!path.empty())
      path = anchored(path, r.folder, it != r.origin.end() && it->second == kSetOrigin).string();
  };
  for (std::string& path : r.data.text) anchor("data.text", path);
  for (std::string& path : r.data.jsonl) anchor("data.jsonl", path);
  for (std::string& path : r.data.validation_jsonl) anchor("data.validation_jsonl", path);
  anchor("model.init", r.model.init);
  anchor("data.train_tokens", r.data.train_tokens);
  anchor("data.validation_tokens", r.data.validation_tokens);
  anchor("data.tokenizer.path", r.data.tokenizer.path);
  anchor("data.cache", r.data.cache);
  anchor("data.csv", r.data.csv);
  anchor("data.labelled", r.data.labelled);
  anchor("data.validation_labelled", r.data.validation_labelled);
  anchor("data.images", r.data.images);
  anchor("data.labels", r.data.labels);
  anchor("data.validation_images", r.data.validation_images);
  anchor("data.validation_labels", r.data.validation_labels);
}

[[noreturn]] void no_such_recipe(const Path& path) {
  if (path_exists(path / "run.json"))
    throw UserError("E0721", "this is a run directory, not a recipe")
        .at(path.string())
        .need("the recipe file (*.toml) that the run was made by")
        .advice("aloft train RECIPE.toml --resume --out " + path.string());
  if (is_folder(path))
    throw UserError("E0721", "this is a folder, not a recipe")
        .at(path.string())
        .need("a file *.toml")
        .advice("aloft recipes " + path.string() + " lists those in it");
  const std::string near = nearest_recipe(path);
  throw UserError("E0721", "there is no such recipe")
      .at(path.string())
      .advice(near.empty() ? "a file *.toml; `aloft recipes` lists those in recipes/" : near);
}

// The optimizer that the leaves name; null where they name none that is known. What the command
// line says stands behind the file.
const optim::OptimizerKind* optimizer_meant(const std::vector<Leaf>& leaves) {
  const optim::OptimizerKind* kind = nullptr;
  for (const Leaf& leaf : leaves)
    if (leaf.key == "optimizer.kind" && leaf.value.is_string())
      kind = optim::find_optimizer_kind(leaf.value.get<std::string>());
  return kind;
}

Recipe parse(std::string_view text, std::string_view name, const std::vector<Override>& overrides,
             bool is_recorded) {
  Recipe recipe;
  std::vector<Leaf> leaves = leaves_of(text, name, overrides);
  // tokenizer = "char" is short for tokenizer = { kind = "char" }.
  for (Leaf& leaf : leaves)
    if (leaf.key == "data.tokenizer" && leaf.value.is_string()) leaf.key = "data.tokenizer.kind";
  const std::optional<FolderMeant> init = folder_meant(leaves, Path(name).parent_path());
  const FamilyMeant meant =
      init ? FamilyMeant{init->spec.family, init->is_set} : family_meant(leaves);
  if (meant.family) {
    recipe.model.family = meant.family->name;
    recipe.model.settings = meant.family->defaults();
  }
  if (const optim::OptimizerKind* kind = optimizer_meant(leaves))
    recipe.optimizer.begin_with(*kind);
  const std::string family = recipe.model.family;
  Reader reader(recipe, meant.is_set, is_recorded);
  refuse_contradictions(leaves, reader);
  for (const Leaf& leaf : leaves) reader.read(leaf);
  const auto mistaken = [&](const KeyMistake& m) {
    reader.mistake(origin_of(recipe, m.key), m.text);
  };
  if (init)
    std::ranges::for_each(apply_folder(recipe, *init), mistaken);
  else if (recipe.model.family !=
           family) {  // the size that the command line names is of another one
    recipe.model.family = family;
    recipe.origin["model.family"] = recipe.origin["model.size"] + kSizeOrigin;
  }
  if (!init)
    if (const auto wrong = apply_size(recipe)) mistaken(*wrong);
  reader.finish();
  return recipe;
}

}  // namespace

std::string nearest_recipe(const Path& path) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(
           path.parent_path().empty() ? "." : path.parent_path(), ignored))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().filename().string());
  const std::string near = nearest_name(path.filename().string(), names);
  return near.empty() ? "" : (path.parent_path() / near).string();
}

Override parse_override(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw UserError("E0713", "--set needs KEY=VALUE")
        .saw(std::string(text))
        .advice("--set train.steps=100 or --set 'data.text=[\"a.txt\"]'");
  return {std::string(trim(text.substr(0, equals))), std::string(trim(text.substr(equals + 1)))};
}

Recipe parse_recipe(std::string_view text, std::string_view name,
                    const std::vector<Override>& overrides) {
  return parse(text, name, overrides, false);
}

Recipe parse_recorded(std::string_view text, std::string_view name,
                      const std::vector<Override>& overrides) {
  return parse(text, name, overrides, true);
}

Recipe load_recipe(const Path& path, const std::vector<Override>& overrides) {
  constexpr std::uint64_t kLimit = 1 << 20;
  const bool is_model = is_folder(path) && path_exists(path / "config.json");
  if (!path_exists(path) || (is_folder(path) && !is_model)) no_such_recipe(path);
  // A folder of a model is the recipe that begins with it and says no more.
  const Path file = is_model ? path / "config.json" : path;
  Recipe recipe = parse_recipe(is_model ? "[model]\ninit = \".\"\n" : read_file(file, kLimit),
                               file.string(), overrides);
  recipe.folder = file.parent_path();
  anchor_paths(recipe);
  take_kind_of_path(recipe);
  return recipe;
}

}  // namespace aloft
