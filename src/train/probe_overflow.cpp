#include "train/probe_overflow.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "frontend/eager_taps.h"
#include "frontend/programs.h"
#include "observe/probe/tap_words.h"
#include "passes/tap_pattern.h"
#include "train/step_values.h"

namespace aloft {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFile = "overflow.json";
// How old the number of steps in the file may be while nothing is found and no checkpoint is made.
constexpr double kSeconds = 1;

std::string value_of_tap(const std::string& tap) { return tap.substr(shown_prefix(tap).size()); }

// What an eager step showed, with what made it; `step` has its numbers.
std::vector<probe::MadeValue> made_values(const EagerTaps& taps, const StepValues& step) {
  const std::vector<EagerTaps::Shown> shown = taps.shown();
  std::map<std::string, const EagerTaps::Shown*> by_name;
  for (const EagerTaps::Shown& s : shown) by_name[value_of_tap(s.name)] = &s;
  std::vector<probe::MadeValue> values;
  for (const probe::LookedAt& value : step.values()) {
    if (value.name.starts_with(probe::kCall)) continue;  // the monitor's
    probe::MadeValue made{value};
    const EagerTaps::Shown& s = *by_name.at(value.name);
    if (const auto& by = s.made_by) {
      made.made_by = by->number;
      made.result = s.result;
      made.op = by->op.str();
      made.module = by->path.str();
      made.call = by->name;
      made.has_operands = by->has_operands;
      made.takes_sums = by->takes_sums;
      for (const std::string& tap : by->operands) made.operands.push_back(value_of_tap(tap));
    }
    values.push_back(std::move(made));
  }
  return values;
}

std::int64_t step_of(const Json& entry) {
  const auto it = entry.is_object() ? entry.find("step") : entry.end();
  return it != entry.end() && it->is_number_integer() ? it->get<std::int64_t>() : -1;
}

}  // namespace

ProbeOverflow::ProbeOverflow(const Session& session, const std::unique_ptr<Runner>& runner,
                             Path folder)
    : session_(session), runner_(runner), folder_(std::move(folder)) {}

void ProbeOverflow::run_begun(const RunBegun& e, Control&) {
  if (folder_.empty()) folder_ = e.folder / "probe";
  if (const Programs* programs = runner_->programs()) {
    const std::string name = Runner::program_of(Look::Statistics, session_.recipe.probe);
    finder_.emplace(*programs->plan().find(name));
    all_ = programs->output<double>(name, kAllStatistics);
  }
  make_folder(folder_);
  if (e.step > 0) take_up(e.step);
  write();
}

// Of a run that goes on: what was found in the steps behind it stays.
void ProbeOverflow::take_up(std::int64_t behind) {
  const Path path = folder_ / kFile;
  if (!path_exists(path)) return;
  const std::string text = read_file(path, std::uint64_t{1} << 30);
  if (!parse_json(text).is_object()) return;
  const auto before = nlohmann::ordered_json::parse(text);  // an entry's keys in their order
  const auto found = before.find("found");
  if (found == before.end() || !found->is_array()) return;
  for (const Json& entry : *found)
    if (const std::int64_t step = step_of(entry); step >= 0 && step < behind)
      found_.push_back(entry);
  const auto steps = before.find("steps");
  if (steps == before.end() || !steps->is_number_integer()) return;
  std::int64_t looked_at = 0;
  for (std::int64_t step = 0; step < behind; ++step)
    looked_at += look_at(session_.recipe.probe, step) != Look::Nothing;
  steps_ = std::clamp<std::int64_t>(steps->get<std::int64_t>(), 0, looked_at);
}

nlohmann::ordered_json ProbeOverflow::first_of_step() const {
  if (const EagerTaps* taps = runner_->taps()) {
    StepValues step;
    step.add(*taps);
    return probe::OverflowFinder(made_values(*taps, step)).first(step.all());
  }
  const auto read = all_.read();
  return finder_->first({read.data(), read.size()});
}

void ProbeOverflow::step_done(const StepDone& e, Control&) {
  const std::int64_t step = e.step - 1;  // of a run the first is 1, of a dump 0
  if (look_at(session_.recipe.probe, step) == Look::Nothing) return;
  ++steps_;
  is_written_ = false;
  Json first = first_of_step();
  if (first.is_null()) {
    if (monotonic_seconds() - written_at_ >= kSeconds) write();
    return;
  }
  log_info("{}: {}", probe::step_text(step), probe::overflow_text(first));
  found_.push_back({{"step", step},
                    {"skipped", e.skipped},
                    {"loss_scale", e.loss_scale},
                    {"first", std::move(first)}});
  write();
}

// Steps behind the checkpoint are made once more, with other data.
void ProbeOverflow::rolled_back(const RolledBack& e) {
  for (Json& entry : found_)
    if (step_of(entry) >= e.step) entry["undone"] = true;
  write();
}

// Who goes on from the checkpoint finds all that was found, and counted, up to there.
void ProbeOverflow::checkpoint_begun(const CheckpointBegun&) { write(true); }

void ProbeOverflow::steps_over(const StepsOver&) {
  if (!is_written_ && !folder_.empty()) write();
}

// Whole or not there, whatever ends the program; a step does not wait for the disk.
void ProbeOverflow::write(bool is_flushed) {
  const Json all = {{"task", "overflow"},
                    {"precision", print_precision(session_.recipe.precision)},
                    {"steps", steps_},
                    {"found", found_}};
  AtomicFile file(folder_ / kFile);
  file.write(all.dump(1, ' ', false, Json::error_handler_t::replace));
  is_flushed ? file.commit() : file.commit_unflushed();
  is_written_ = true;
  written_at_ = monotonic_seconds();
}

}  // namespace aloft
