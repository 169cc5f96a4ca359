#include "train/run_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/data_record.h"
#include "data/tokenizer.h"
#include "models/published_files.h"
#include "recipe/memory_need.h"
#include "recipe/resume_changes.h"
#include "recipe/run_length.h"
#include "recipe/what_lies_there.h"
#include "run/recorded_choices.h"
#include "runtime/current_device.h"
#include "sources/run_tokenizer.h"
#include "sources/source_kind.h"
#include "train/run_record.h"
#include "train/session.h"

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

// Where a training ends before the schedule, or the means of the weights, have done what they are
// for, or the probe has looked at anything.
void warn_of_short_run(const Recipe& recipe) {
  const std::int64_t steps = recipe.train.steps;
  const ScheduleSection& s = recipe.schedule;
  const OptimizerSection& o = recipe.optimizer;
  const bool restarts = s.kind == name_of(scalar::ScheduleKind::CosineRestarts);
  if (s.warmup > steps)
    log_warning("schedule.warmup is {} updates and the run {}: the learning rate stays below {:g}",
                s.warmup, steps, o.lr);
  else if (s.steps > 0 && s.warmup > s.steps)
    log_warning(
        "schedule.warmup is {} updates and schedule.steps {}: behind the warm-up nothing is left "
        "of the schedule, and the rate drops to its end at once",
        s.warmup, s.steps);
  else if (restarts && s.cycle > steps - s.warmup)
    log_warning(
        "schedule.cycle is {} updates{} and the run {}: it ends within the first cycle, and the "
        "rate never restarts",
        s.cycle, s.warmup > 0 ? fmt::format(" behind {} of warm-up", s.warmup) : "", steps);
  if (o.average != name_of(AverageKind::None) && o.average_from >= steps)
    log_warning(
        "optimizer.average_from is {} updates and the run {}: the means are the weights themselves "
        "to its end",
        o.average_from, steps);
  const std::vector<std::int64_t>& at = recipe.probe.at;
  if (recipe.probe.task != "none" && !at.empty() && std::ranges::min(at) >= steps)
    log_warning("probe.at begins with step {} and the run makes {}, from 0 on: none is looked at",
                std::ranges::min(at), steps);
}

// What the schedule lacks, before anything is prepared for it.
void check_length(const Recipe& recipe, const TrainOptions& options) {
  static_cast<void>(schedule_rule(recipe));
  if (!options.only_steps) warn_of_short_run(recipe);
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
    if (from) place_ = {from->step, from->data_position - passed_over(from->rollbacks)};
  }

  RunStart start() {
    compare_recipes();
    std::unique_ptr<RunData> data =
        source_of(recipe_).reopen(recipe_, {options_.out, data_record_, changes_}, options_.quiet);
    json data_record = data->record();
    compare_data(data_record, *data);
    settle_length(recipe_, data->examples(recipe_), place_);
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
    refuse_lost_tokenizer();
    refuse_fixed(changes_, has_checkpoint_);
  }

  // The folder that a run began from said its tokenizer. Where it has none now the recipe comes to
  // one that would be made of the text, which nobody asks for.
  void refuse_lost_tokenizer() const {
    for (const RecipeChange& c : changes_) {
      if (c.key != "data.tokenizer.path" || !c.before.is_string() || c.now != "") continue;
      const std::string folder = c.before;
      if (is_tokenizer(folder)) return;
      UserError e("E0817", "this recipe cannot go on with the run: its tokenizer is gone");
      e.add_line("at", folder);
      say_no_tokenizer(e, folder);
      const Path own = own_tokenizer(options_.out);
      if (is_tokenizer(own))
        e.add_line("try",
                   fmt::format("or the run's own: --set data.tokenizer.path={} "
                               "--set data.tokenizer.kind={}",
                               std::filesystem::absolute(own).string(), kind_of_tokenizer(own)));
      throw e;
    }
  }

  // What was chosen by measurement when the run began is chosen: another measurement, or another
  // machine, must not end it. A run whose precision was named has that when it goes on with `auto`.
  void take_choices(const json& before) {
    choices_ = recorded_choices(record_, (options_.out / "run.json").string());
    if (recipe_.precision.is_resolved()) return;
    if (const auto settled = settled_precision(before))
      choices_.choose(std::string(kPrecisionChoice), [&] { return precision_choice(*settled); });
    if (choices_.has(std::string(kPrecisionChoice)))
      recipe_.precision = settle_precision(asked_precision(recipe_), choices_, {},
                                           current_device().features().capability);
  }

  static json lost_data_record(const CheckpointMeta& from) {
    log_warning("data.json is gone: the data is compared with what {} says",
                from.data.is_object() ? fmt::format("the checkpoint of step {}", from.step)
                                      : "run.json, which is no more than its number of tokens");
    return from.data;
  }

  void compare_data(const json& now, const RunData& data) {
    if (data_record_.is_object() ? is_same_data(data_record_, now) : has_known_counts(data)) return;
    UserError e("E0818", "the data of the run is not what it was");
    for (const RecipeChange& c : changes_)
      if (c.meaning == OnResume::Data) e.add_line("saw", fmt::format("{}: {}", c.str(), c.text));
    for (const std::string& line : data_differences(data_record_, now)) e.add_line("saw", line);
    if (!data_record_.is_object())
      e.add_line("saw", fmt::format("{} {} in run.json, now {}", data.unit(),
                                    json_text(known_counts(data)), json_text(data.counts())));
    // Said to who makes a step of the run again, too, which no other data can do.
    e.add_line("try", fmt::format("bring the data{} back as it was; training alone goes on with "
                                  "the new one, by `aloft train --resume --force`",
                                  data_record_.is_object() && data_record_.contains("template")
                                      ? " and the chat template"
                                      : ""));
    if (!options_.force) throw e;
    say_other_data(e.headline(), changes_);
    is_other_data_ = true;
    counts_before_ = known_counts(data);
  }

  // Where the record of the data is gone: what run.json says of it.
  json known_counts(const RunData& data) const {
    return record_.is_object() ? record_.value(std::string(data.unit()), json()) : json();
  }
  bool has_known_counts(const RunData& data) const {
    return known_counts(data).is_null() || known_counts(data) == data.counts();
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
    json entry = {{"at", utc_timestamp()},
                  {"aloft", ALOFT_VERSION},
                  {"environment", environment_record()},
                  {"changed", json::object()}};
    for (const RecipeChange& c : changes_) entry["changed"][c.key] = {c.before, c.now};
    if (is_other_data_)
      entry["data_before"] = data_record_.is_object() ? data_record_ : counts_before_;
    if (is_other_data_ && data_record_.is_object()) entry["data_before"].erase("files");
    all.push_back(std::move(entry));
    return all;
  }

  const TrainOptions& options_;
  const bool has_checkpoint_;
  json record_, data_record_, counts_before_;
  Recipe recipe_;
  std::vector<RecipeChange> changes_;
  Choices choices_;
  RunPlace place_;
  bool is_other_data_ = false;
};

RunStart new_run(const Recipe& recipe, const TrainOptions& options) {
  RunStart start{recipe, source_of(recipe).open(recipe, options.quiet), {}, "", json::array(), {},
                 {}};
  start.choices = options.choices;
  start.data_record = start.data->record();
  settle_length(start.recipe, start.data->examples(recipe));
  return start;
}

// What the task takes, and what there is.
void check_columns(const Recipe& recipe, const RunData& data) {
  std::vector<std::string> wanted;
  const models::ModelSpec spec = model_spec(recipe);
  SettingValues facts = spec.family->made_up;
  for (const auto& [key, value] : data.facts(recipe)) facts[key] = value;
  const std::vector<Column> columns = task_kind(recipe).columns(spec, facts);
  for (const Column& c : columns) wanted.push_back(c.name);
  if (wanted == data.columns()) {
    for (const Column& c : columns) data.check_values(c);
    return;
  }
  throw UserError("E0727", "the data is not what the task learns from")
      .saw(join(data.columns(), ", "))
      .need(fmt::format("{}, for {}", join(wanted, ", "), task_kind(recipe).name))
      .advice(
          "another task.kind or model.family; data.csv has targets where data.outputs says how "
          "many "
          "numbers at a line's end they are, and labels without");
}

}  // namespace

RunStart begin_run(const Recipe& recipe, const TrainOptions& options, const json& known,
                   const CheckpointMeta* from) {
  const bool counts_epochs = recipe.train.epochs > 0;  // then the data decides
  if (!counts_epochs) check_length(recipe, options);
  need_memory_for(recipe, SettingValues());  // before any text is read
  RunStart start = options.resume && !known.is_null()
                       ? Resumption(recipe, options, known, from).start()
                       : new_run(recipe, options);
  if (counts_epochs) check_length(start.recipe, options);
  check_columns(start.recipe, *start.data);
  if (!options.resume)
    check_measured_layers(start.choices, start.recipe, start.data->facts(start.recipe));
  start.data->check(start.recipe);
  return start;
}

void keep_data(const RunStart& start, const Path& run) {
  if (const Tokenizer* tokenizer = start.data->tokenizer()) {
    make_folder(run / "tokenizer");
    tokenizer->save(run / "tokenizer");
  }
  if (const std::string& init = start.recipe.model.init;
      !init.empty() && !path_exists(run / "init" / "config.json"))
    models::copy_published_files(init, run / "init");
  write_file_atomic(run / "data.json", json_text(start.data_record) + "\n");
}

}  // namespace aloft
