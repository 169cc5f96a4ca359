#include "train/recorded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/folder.h"
#include "base/json.h"
#include "frontend/programs.h"
#include "models/model_json.h"
#include "recipe/memory_need.h"
#include "recipe/run_length.h"
#include "run/recorded_recipe.h"
#include "run/run_directory.h"
#include "runtime/current_device.h"
#include "train/evaluate.h"
#include "train/step_maker.h"

namespace aloft {

namespace {

using nlohmann::json;

// What metrics.jsonl says of steps, the last line of each, and of returns to a checkpoint: the
// steps behind which the run went on, the first return's first.
struct Lines {
  std::map<std::int64_t, json> steps;
  std::vector<std::int64_t> returns;
};

Lines lines_of(const Path& path) {
  Lines lines;
  if (!path_exists(path)) return lines;
  std::istringstream text(read_file(path, std::uint64_t{8} << 30));
  for (std::string line; std::getline(text, line);) {
    json read = parse_json(line);
    if (!read.is_object() || !read.contains("step") || !read["step"].is_number_integer()) continue;
    const auto step = read["step"].get<std::int64_t>();
    if (read.contains("rollback"))
      lines.returns.push_back(step);
    else if (read.contains("loss"))
      lines.steps.insert_or_assign(step, std::move(read));
  }
  return lines;
}

// A record that others may have written to: nothing where it is of another type.
std::string text_in(const json& record, const char* key) {
  const auto it = record.is_object() ? record.find(key) : record.end();
  return it != record.end() && it->is_string() ? it->get<std::string>() : "";
}

UserError not_as_it_was(const std::string& why, std::int64_t at) {
  return UserError("E0862", "the step cannot be made as it was: " + why)
      .saw(fmt::format("at step {}, and no checkpoint between there and the step", at))
      .need("a checkpoint behind it, or a step before it")
      .advice("train.keep_checkpoints = 0 keeps every checkpoint of a run");
}

// The recipe that the steps behind a checkpoint were made under: run.json has that of the last
// start, which a resume may have changed.
json recipe_behind(const json& record, const std::optional<StoredCheckpoint>& from,
                   std::int64_t step) {
  const std::int64_t begin = from ? from->meta.step : 0;
  const json history = record.value("history", json::array());
  bool is_changed_behind = false, is_changed_there = false;
  for (const json& entry : history) {
    if (!entry.is_object() || entry.value("changed", json()).empty()) continue;
    const json& where = entry.value("step", json());
    if (!where.is_number_integer())
      throw DataError("E0643", "run.json says of no step where a resume has changed the recipe")
          .saw(where.dump())
          .need("a number of steps");
    const auto at = where.get<std::int64_t>();
    if (at > begin && at <= step) throw not_as_it_was("a resume has changed the recipe", at);
    is_changed_behind = is_changed_behind || at > step;
    is_changed_there = is_changed_there || (at == begin && at > 0);
  }
  if (!is_changed_behind) return record.at("recipe");
  // A checkpoint has the recipe of the steps before it.
  if (!from || is_changed_there || !from->meta.recipe.is_object())
    throw not_as_it_was("later resumes have changed the recipe, which is known no more", begin);
  return from->meta.recipe;
}

// Where the run went back between the checkpoint and the step, it has passed examples over. Both
// its checkpoints and its metrics say where it did: either may be gone, or damaged.
void need_no_return(CheckpointFolder& checkpoints, std::vector<std::int64_t> returns,
                    const std::optional<StoredCheckpoint>& from, std::int64_t step) {
  if (const auto newest = checkpoints.newest())
    for (std::size_t i = returns.size(); i < newest->meta.rollbacks.size(); ++i)
      returns.push_back(newest->meta.rollbacks[i].to);
  const std::int64_t begin = from ? from->meta.step : 0;
  for (std::size_t i = from ? from->meta.rollbacks.size() : 0; i < returns.size(); ++i)
    if (returns[i] >= begin && returns[i] <= step)
      throw not_as_it_was("the run went back, and on with other data", returns[i]);
}

// Eager steps have the bits of compiled ones, whose instructions can be told one from another.
std::vector<Override> of_compiled_steps(std::vector<Override> overrides, const json& record) {
  if (text_in(record, "mode") == "eager") overrides.push_back({"train.mode", "\"graph\""});
  return overrides;
}

Buffer buffer_of(Executor& executor, const StateSlot& slot, std::size_t part) {
  const Buffer arena = executor.arena(slot.arena_at(part));
  const ByteRange range = slot.range(part);
  return arena ? arena.part(slot.parts[part].offset, range.bytes) : arena;
}

// Of an error's text where it is, and what: "runs/gpt/checkpoints/step-000004: it is ...".
std::string in_a_line(const std::string& text) {
  std::istringstream lines(text);
  std::string headline, line;
  std::getline(lines, headline);
  headline.erase(0, headline.find(": ") + 2);  // "error E0641: "
  constexpr std::string_view kPlace = "  at    ";
  while (std::getline(lines, line))
    if (line.starts_with(kPlace)) return line.substr(kPlace.size()) + ": " + headline;
  return headline;
}

// Whether one of the problems is that checkpoint's.
bool is_damaged(const Path& checkpoint, const std::vector<std::string>& problems) {
  return std::ranges::any_of(problems, [&](const std::string& problem) {
    return problem.find(checkpoint.string()) != std::string::npos;
  });
}

bool is_same_number(const json& recorded, double now) {
  if (recorded.is_null()) return !std::isfinite(now);
  return recorded.is_number() && recorded.get<double>() == now;
}

}  // namespace

void need_recorded_run(const Path& run) {
  if (path_exists(run / "run.json")) return;
  UserError e("E0862", "no run is there whose steps could be made again");
  e.add_line("at", run.string());
  e.add_line("saw", !path_exists(run) ? "nothing at that path"
                    : is_folder(run)  ? "a folder without run.json"
                                      : "a file");
  e.add_line("need", "the directory of a run, which `aloft train` wrote: run.json lies in it");
  const Path whole = run.has_filename() ? run : run.parent_path();
  const Path around = whole.has_parent_path() ? whole.parent_path() : Path(".");
  const Path usual = Path("runs") / whole.stem();  // where `aloft train` writes without --out
  std::vector<std::string> names;
  if (is_folder(around))
    for (const Path& p : list_folder(around))
      if (path_exists(p / "run.json")) names.push_back(p.filename().string());
  const Path above = around.has_parent_path() ? around.parent_path() : Path(".");
  if (whole.has_parent_path() && path_exists(around / "run.json"))
    e.add_line("try", around.string());
  else if (around.has_parent_path() && path_exists(above / "run.json"))
    e.add_line("try", above.string());
  else if (path_exists(usual / "run.json"))
    e.add_line("try", usual.string());
  else if (const std::string near = nearest_name(whole.filename().string(), names); !near.empty())
    e.add_line("try", (around / near).lexically_normal().string());
  else if (run.extension() == ".toml")
    e.add_line("try", "aloft train " + run.string() + " --out RUN, and RUN here");
  throw e;
}

RecordedRun::RecordedRun(const Path& run, std::int64_t step, const std::vector<Override>& overrides,
                         std::optional<std::int64_t> first)
    : folder_(run),
      step_(step),
      record_(read_run_record(run / "run.json")),
      checkpoints_(run / "checkpoints", run_name(record_)) {
  Lines lines = lines_of(run / "metrics.jsonl");
  lines_ = std::move(lines.steps);
  if (step < 0 || !lines_.contains(step + 1))
    throw UserError("E0862", "the run has no record of that step")
        .at((run / "metrics.jsonl").string())
        .saw(fmt::format("step {}, counted from 0 (in metrics.jsonl step {})", step, step + 1))
        .need(lines_.empty() ? "a run that has made steps"
                             : fmt::format("a step from 0 to {}", lines_.rbegin()->first - 1));
  const auto from = checkpoints_.newest(
      [begin = first.value_or(step)](const CheckpointMeta& meta) { return meta.step <= begin; });
  json known = record_;
  try {
    known["recipe"] = recipe_behind(record_, from, step);
    need_no_return(checkpoints_, std::move(lines.returns), from, step);
  } catch (UserError& e) {  // which a checkpoint might spare that is there, and damaged
    note_damage();
    for (const std::string& problem : damaged_) e.add_line("saw", problem);
    throw;
  }
  note_damage();
  const Recipe recipe =
      recorded_recipe(known["recipe"], record_.value("origin", json()), (run / "run.json").string(),
                      of_compiled_steps(overrides, record_));
  TrainOptions options;
  options.out = run;
  options.resume = options.quiet = true;
  start_ = begin_run(recipe, options, known, from ? &from->meta : nullptr);
  session_ = open_session(start_->recipe, start_->data->facts(recipe), {}, start_->choices);
  start_->data->fit(session_.spec);
  runner_ = make_runner(session_);
  need_memory_for(runner_->programs()->plan());
  make_values(session_);
  if (from) {
    load_checkpoint(from->path, models::json_of(session_.spec), session_.model(),
                    {*session_.optimizer});
    begins_at_ = at_ = from->meta.step;
    position_ = from->meta.data_position;
  }
  runner_->start();
}

RecordedRun::~RecordedRun() = default;

// A rate that goes by validation losses wants them where the run had them.
void RecordedRun::evaluate_if_rate_depends(std::int64_t behind) {
  const TrainSection& train = session_.recipe.train;
  const bool is_due = train.eval_every > 0 && behind % train.eval_every == 0;
  if (!session_.optimizer->plateau() || !is_due || !start_->data->has_validation()) return;
  const auto examples = start_->data->validation(session_.recipe);
  if (const auto means = evaluate(*runner_, *examples, train.eval_batches))
    session_.optimizer->report_loss(means->front());
}

void RecordedRun::go_to_step(const std::function<void(const StepDone&)>& made) {
  const Recipe& recipe = session_.recipe;
  StepMaker maker(*session_.optimizer, recipe.train.accumulate, units_an_example(recipe));
  const auto examples = start_->data->training(recipe, position_);
  while (at_ < step_) {
    StepDone done = maker.make(*runner_, *examples, at_).numbers;
    position_ = maker.position();
    done.step = ++at_;
    if (made) made(done);
    evaluate_if_rate_depends(at_);
  }
}

StepDone RecordedRun::make_step() {
  ensure(at_ == step_, "a step is made from the state before it");
  const Recipe& recipe = session_.recipe;
  StepMaker maker(*session_.optimizer, recipe.train.accumulate, units_an_example(recipe));
  const auto examples = start_->data->training(recipe, position_, 0);
  StepDone done = maker.make(*runner_, *examples, at_).numbers;
  done.step = at_ + 1;
  return done;
}

StateBytes RecordedRun::state() {
  programs().device().synchronize();
  StateBytes bytes;
  for (const StateSlot& slot : programs().plan().state) {
    std::vector<std::byte>& all = bytes.emplace_back();
    for (std::size_t k = 0; k < slot.parts.size(); ++k) {
      const Buffer part = buffer_of(programs().executor(), slot, k);
      const std::size_t at = all.size();
      if (!part) continue;
      all.resize(at + part.bytes());
      part.read_into(std::span(all).subspan(at));
    }
  }
  return bytes;
}

void RecordedRun::set_state(const StateBytes& state) {
  const auto& slots = programs().plan().state;
  ensure(state.size() == slots.size(), "a state is that of the same Plan");
  for (std::size_t s = 0; s < slots.size(); ++s) {
    std::size_t at = 0;
    for (std::size_t k = 0; k < slots[s].parts.size(); ++k) {
      const Buffer part = buffer_of(programs().executor(), slots[s], k);
      if (!part) continue;
      part.write_from(std::span(state[s]).subspan(at, part.bytes()));
      at += part.bytes();
    }
  }
}

void RecordedRun::stand_at(const StateBytes& state, std::uint64_t position) {
  set_state(state);
  at_ = step_;
  position_ = position;
}

std::optional<StateBytes> RecordedRun::saved_state() {
  const auto behind =
      checkpoints_.newest([&](const CheckpointMeta& meta) { return meta.step == step_ + 1; });
  note_damage();
  if (!behind) {
    is_saved_state_damaged_ = is_damaged(checkpoints_.path_of(step_ + 1), damaged_);
    return std::nullopt;
  }
  try {
    load_checkpoint(behind->path, models::json_of(session_.spec), session_.model(),
                    {*session_.optimizer});
  } catch (const DataError& e) {  // since it was looked at
    damaged_.push_back(in_a_line(e.what()));
    is_saved_state_damaged_ = true;
    return std::nullopt;
  }
  return state();
}

void RecordedRun::note_damage() {
  damaged_.clear();
  for (const std::string& problem : checkpoints_.problems()) damaged_.push_back(in_a_line(problem));
}

nlohmann::json RecordedRun::recorded(std::int64_t step) const {
  const auto it = lines_.find(step + 1);
  return it == lines_.end() ? json() : it->second;
}

bool RecordedRun::has_numbers_of(std::int64_t step) const { return lines_.contains(step + 1); }

std::vector<std::string> RecordedRun::differences(const StepDone& now) const {
  std::vector<std::string> all;
  const json line = recorded(now.step - 1);
  if (line.is_null()) return all;
  for (const auto& [key, value] :
       {std::pair("loss", now.loss), std::pair("grad_norm", now.grad_norm), std::pair("lr", now.lr),
        std::pair("loss_scale", now.loss_scale)})
    if (!line.contains(key))
      all.push_back(fmt::format("{} is {}, and not on record", key, value));
    else if (!is_same_number(line[key], value))
      all.push_back(fmt::format("{} was {} and is {}", key, line[key].dump(), value));
  const json skipped = line.value("skipped", json(false));
  if (!skipped.is_boolean())
    all.push_back(fmt::format("skipped was {}, which is neither true nor false", skipped.dump()));
  else if (skipped.get<bool>() != now.skipped)
    all.push_back(now.skipped ? "it was not skipped, and is" : "it was skipped, and is not");
  return all;
}

bool RecordedRun::is_as_recorded(const std::string& machine) {
  return text_in(record_, "signature") == programs().plan().signature() &&
         text_in(record_, "aloft") == ALOFT_VERSION &&
         (machine.empty() || text_in(record_, "machine") == machine);
}

}  // namespace aloft
