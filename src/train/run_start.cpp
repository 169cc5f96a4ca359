#include "train/run_start.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/data_record.h"
#include "data/order.h"
#include "recipe/memory_need.h"
#include "recipe/resume_changes.h"
#include "recipe/run_length.h"
#include "run/recorded_choices.h"
#include "runtime/current_device.h"

namespace aloft {
namespace {

using nlohmann::json;

constexpr std::uint64_t kRecordLimit = std::uint64_t{1} << 30;

// data.json of the run's directory; null where there is none.
json read_data_record(const Path& path, bool force) {
  if (!path_exists(path)) return nullptr;
  try {
    return parse_data_record(read_file(path, kRecordLimit), path.string());
  } catch (const DataError& e) {
    if (!force) throw;
    log_warning("{}", e.headline());
    return nullptr;
  }
}

// An sgd that was given no momentum had none, whatever an earlier version recorded beside it.
void set_plain_sgd(json& recipe) {
  const json::json_pointer kind("/optimizer/kind"), momentum("/optimizer/momentum");
  if (recipe.contains(kind) && recipe[kind] == "sgd") recipe[momentum] = 0.0;
}

// What the schedule lacks, before anything is prepared for it.
void check_length(const Recipe& recipe) {
  static_cast<void>(schedule_rule(recipe));
  const ScheduleSection& s = recipe.schedule;
  if (s.warmup > recipe.train.steps)
    log_warning("schedule.warmup is {} updates and the run {}: the learning rate stays below {:g}",
                s.warmup, recipe.train.steps, recipe.optimizer.lr);
  else if (s.steps > 0 && s.warmup > s.steps)
    log_warning(
        "schedule.warmup is {} updates and schedule.steps {}: behind the warm-up nothing is left "
        "of the schedule, and the rate drops to its end at once",
        s.warmup, s.steps);
}

// A step that reads the whole text several times over is rarely meant.
void warn_of_few_windows(const Recipe& recipe, std::uint64_t train_tokens) {
  const std::int64_t windows = windows_of(recipe, train_tokens);
  const std::int64_t a_step = windows_a_step(recipe);
  if (recipe.data.sampling == "random" || windows >= a_step) return;
  log_warning(
      "the training text is {} window{} of {} tokens and a step takes {}: every step reads all of "
      "it more than once; more text, a smaller train.batch or model.context, or data.sampling = "
      "random",
      windows, windows == 1 ? "" : "s", tokens_an_example(recipe), a_step);
}

class Resumption {
 public:
  Resumption(const Recipe& recipe, const TrainOptions& options, const json& known,
             const CheckpointMeta* from)
      : options_(options),
        has_checkpoint_(from != nullptr),
        record_(known),
        data_record_(read_data_record(options.out / "data.json", options.force)) {
    recipe_ = recipe;
    if (!data_record_.is_object()) data_record_ = record_.value("data", json());
    if (!data_record_.is_object() && from) data_record_ = lost_data_record(*from);
    if (from) place_ = {from->step, from->data_position};
  }

  RunStart start() {
    compare_recipes();
    Dataset data = open_own_data();
    json data_record = is_text_gone_ ? data_record_ : data_record_of(data);
    compare_data(data_record, data.info);
    settle_length(recipe_, data.train.size(), place_);
    return {recipe_,  std::move(data), std::move(data_record), started(), history(),
            changes_, choices_};
  }

 private:
  void compare_recipes() {
    if (!record_.is_object() || !record_.contains("recipe")) return;
    json before = record_["recipe"];
    const auto origin = record_.find("origin");
    if (origin != record_.end() && !origin->contains("optimizer.momentum")) set_plain_sgd(before);
    take_choices(before);
    changes_ = recipe_changes(before, recipe_);
    refuse_fixed(changes_, has_checkpoint_);
  }

  // What was chosen by measurement when the run began is chosen: another measurement, or another
  // machine, must not end it. A run whose precision was named has that when it goes on with `auto`.
  void take_choices(const json& before) {
    choices_ = recorded_choices(record_, (options_.out / "run.json").string());
    if (recipe_.precision.is_resolved()) return;
    if (const auto settled = settled_precision(before))
      choices_.choose(std::string(kPrecisionChoice), [&] { return precision_choice(*settled); });
    if (choices_.has(std::string(kPrecisionChoice)))
      recipe_.precision =
          settle_precision(recipe_.precision, choices_, {}, current_device().features().capability);
  }

  static json lost_data_record(const CheckpointMeta& from) {
    log_warning("data.json is gone: the data is compared with what {} says",
                from.data.is_object() ? fmt::format("the checkpoint of step {}", from.step)
                                      : "run.json, which is no more than its number of tokens");
    return from.data;
  }

  Path own_tokenizer() const { return options_.out / "tokenizer"; }

  // The run's own tokens, also where the text that they were made of is gone.
  Dataset open_own_data() {
    try {
      return open_todays_data();
    } catch (const DataError& e) {
      if (e.code() == "E0501") refuse_characters(e);
      if (e.code() != "E0510" && e.code() != "E0511") throw;
      refuse_other_tokens(e);
      std::optional<Dataset> kept = cached_data(recipe_, signature_in(data_record_));
      if (!kept || !is_same_data(data_record_, data_record_of(*kept))) throw;
      log_warning("{}: the run goes on with its own tokens, which lie in {}", e.headline(),
                  kept->info.folder.string());
      is_text_gone_ = true;
      return *std::move(kept);
    }
  }

  // The run's own tokens are of the data that it had: what is asked for anew wants the text.
  void refuse_other_tokens(DataError why) const {
    bool any = false;
    for (const RecipeChange& c : changes_)
      if (c.meaning == OnResume::Data) {
        why.add_line("because", c.str());
        any = true;
      }
    if (!any) return;
    why.add_line("try", "bring the text back, or leave [data] as the run had it");
    throw DataError(why);
  }

  // The run's tokenizer has no ids for today's text: no --force helps.
  [[noreturn]] void refuse_characters(const DataError& why) const {
    UserError e("E0818", "the data of the run is not what it was");
    e.add_line("saw", why.headline());
    // Its lines that say which, and in which file: "  saw   U+2603".
    for (const std::string_view line : split(why.what(), '\n'))
      for (const std::string_view label : {"  saw ", "  in "})
        if (line.starts_with(label)) e.add_line("saw", trim(line.substr(label.size())));
    for (const std::string& line : file_differences(data_record_, files_of_text(recipe_)))
      e.add_line("saw", line);
    e.add_line("need",
               "the characters that the run's tokenizer knows, " + own_tokenizer().string());
    e.add_line("try",
               "bring the data back as it was, leave new characters out, or begin a new run");
    throw e;
  }

  // With the run's tokenizer, whatever the recipe would make of today's text.
  Dataset open_todays_data() {
    Recipe recipe = recipe_;
    if (!path_exists(own_tokenizer() / kTokenizerFile)) return open_data(recipe, options_.quiet);
    const bool is_given_gone = !recipe.data.tokenizer.path.empty() && !has_given_tokenizer();
    if (recipe.data.train_tokens.empty() && !is_given_gone)
      if (auto cached = cached_data(recipe)) {
        const std::string made = hex16(cached->tokenizer->fingerprint());
        if (made == hex16(load_tokenizer(own_tokenizer())->fingerprint())) {
          say_odd_files(*cached, options_.quiet);
          return *std::move(cached);
        }
      }
    recipe.data.tokenizer.path = std::filesystem::absolute(own_tokenizer()).string();
    recipe.data.tokenizer.kind.clear();
    return open_data(recipe, options_.quiet);
  }

  // Whether the tokenizer that the recipe names is there, and the run's; another one is refused.
  bool has_given_tokenizer() const {
    const Path given = recipe_.folder / recipe_.data.tokenizer.path;
    const auto own = load_tokenizer(own_tokenizer());
    std::unique_ptr<Tokenizer> found;
    try {
      found = load_tokenizer(given);
    } catch (const DataError& e) {
      log_warning("data.tokenizer.path, {}: {}: the run goes on with its own, {}", given.string(),
                  e.headline(), own_tokenizer().string());
      return false;
    }
    if (found->fingerprint() == own->fingerprint()) return true;
    throw UserError("E0817", "this recipe cannot go on with the run: its tokenizer is another one")
        .saw(given.string())
        .need("the run's own, " + own_tokenizer().string())
        .advice("leave data.tokenizer as it was, or begin a new run");
  }

  void compare_data(const json& now, const DatasetInfo& info) {
    if (data_record_.is_object() ? is_same_data(data_record_, now) : has_known_counts(info)) return;
    UserError e("E0818", "the data of the run is not what it was");
    for (const RecipeChange& c : changes_)
      if (c.meaning == OnResume::Data) e.add_line("saw", fmt::format("{}: {}", c.str(), c.text));
    for (const std::string& line : data_differences(data_record_, now)) e.add_line("saw", line);
    if (!data_record_.is_object())
      e.add_line("saw", fmt::format("tokens {} in run.json, now {}", json_text(known_counts()),
                                    json_text(counts_of(info))));
    e.add_line("try", "bring the data back as it was, or --force to go on with the new one");
    if (!options_.force) throw e;
    say_other_data(e.headline(), changes_);
    is_other_data_ = true;
  }

  // Where the record of the data is gone: what run.json says of it.
  json known_counts() const {
    return record_.is_object() ? record_.value("tokens", json()) : json();
  }
  static json counts_of(const DatasetInfo& info) {
    return {{"train", info.train_tokens}, {"validation", info.validation_tokens}};
  }
  bool has_known_counts(const DatasetInfo& info) const {
    return known_counts().is_null() || known_counts() == counts_of(info);
  }

  std::string started() const {
    if (!record_.is_object()) return "";
    const auto it = record_.find("started");
    return it != record_.end() && it->is_string() ? it->get<std::string>() : "";
  }

  // The run's earlier resumes, and this one.
  json history() const {
    json all = json::array();
    if (record_.is_object())
      if (const auto it = record_.find("history"); it != record_.end() && it->is_array()) all = *it;
    json entry = {{"at", utc_timestamp()}, {"aloft", ALOFT_VERSION}, {"changed", json::object()}};
    for (const RecipeChange& c : changes_) entry["changed"][c.key] = {c.before, c.now};
    if (is_other_data_)
      entry["data_before"] = data_record_.is_object() ? data_record_ : known_counts();
    if (is_other_data_ && data_record_.is_object()) entry["data_before"].erase("files");
    all.push_back(std::move(entry));
    return all;
  }

  const TrainOptions& options_;
  const bool has_checkpoint_;
  json record_, data_record_;
  Recipe recipe_;
  std::vector<RecipeChange> changes_;
  Choices choices_;
  RunPlace place_;
  bool is_other_data_ = false, is_text_gone_ = false;
};

RunStart new_run(const Recipe& recipe, const TrainOptions& options) {
  RunStart start{recipe, open_data(recipe, options.quiet), {}, "", json::array(), {}, {}};
  start.choices = options.choices;
  start.data_record = data_record_of(start.data);
  settle_length(start.recipe, start.data.train.size());
  return start;
}

}  // namespace

RunStart begin_run(const Recipe& recipe, const TrainOptions& options, const json& known,
                   const CheckpointMeta* from) {
  const bool counts_epochs = recipe.train.epochs > 0;  // then the data decides
  if (!counts_epochs) check_length(recipe);
  need_memory_for(recipe, SettingValues());  // before any text is read
  RunStart start = options.resume && !known.is_null()
                       ? Resumption(recipe, options, known, from).start()
                       : new_run(recipe, options);
  if (counts_epochs) check_length(start.recipe);
  // A context that the text does not fill, before a plan is made for it.
  const auto context = static_cast<std::uint64_t>(tokens_an_example(recipe));
  static_cast<void>(WindowOrder(start.data.train.size(), context, {}));
  warn_of_few_windows(start.recipe, start.data.train.size());
  return start;
}

void keep_data(const RunStart& start, const Path& run) {
  if (start.data.tokenizer) {
    make_folder(run / "tokenizer");
    start.data.tokenizer->save(run / "tokenizer");
  }
  write_file_atomic(run / "data.json", json_text(start.data_record) + "\n");
}

}  // namespace aloft
