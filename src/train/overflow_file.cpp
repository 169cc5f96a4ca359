#include "train/overflow_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "observe/probe/overflow.h"
#include "observe/probe/tap_words.h"
#include "passes/tap_pattern.h"
#include "train/step_values.h"

namespace aloft {

namespace {

using Json = nlohmann::ordered_json;

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
      made.unseen = by->unseen;
      for (const std::string& tap : by->operands)
        if (!tap.empty()) made.operands.push_back(value_of_tap(tap));
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

nlohmann::ordered_json first_overflow(const EagerTaps& taps) {
  StepValues step;
  step.add(taps);
  return probe::OverflowFinder(made_values(taps, step)).first(step.all());
}

OverflowFile::OverflowFile(Path folder, std::string precision)
    : folder_(std::move(folder)), precision_(std::move(precision)) {
  make_folder(folder_);
}

void OverflowFile::take_up(const ProbeSection& probe, std::int64_t behind) {
  const Path path = folder_ / kOverflowFile;
  if (!path_exists(path)) return;
  const std::string text = read_file(path, std::uint64_t{1} << 30);
  Json before;  // an entry's keys in their order
  if (parse_json(text).is_object()) before = nlohmann::ordered_json::parse(text);
  const auto found = before.find("found");
  if (found == before.end() || !found->is_array()) {
    const Path aside = folder_ / (std::string(kOverflowFile) + ".damaged");
    std::error_code failed;
    std::filesystem::rename(path, aside, failed);
    log_warning("{} cannot be read: what it found is not gone on with; it {} {}", path.string(),
                failed ? "stays at" : "is kept as", failed ? path.string() : aside.string());
    return;
  }
  for (const Json& entry : *found)
    if (const std::int64_t step = step_of(entry); step >= 0 && step < behind)
      found_.push_back(entry);
  const auto steps = before.find("steps");
  if (steps == before.end() || !steps->is_number_integer()) return;
  std::int64_t looked_at = 0;
  for (std::int64_t step = 0; step < behind; ++step)
    looked_at += look_at(probe, step) != Look::Nothing;
  steps_ = std::clamp<std::int64_t>(steps->get<std::int64_t>(), 0, looked_at);
}

void OverflowFile::add(std::int64_t step, nlohmann::ordered_json first,
                       nlohmann::ordered_json more) {
  ++steps_;
  is_written_ = false;
  if (first.is_null()) {
    if (monotonic_seconds() - written_at_ >= kSeconds) write();
    return;
  }
  const bool is_known = !found_.empty() && found_.back().at("first").value("name", "") ==
                                               first.at("name").get<std::string>();
  // Metrics, of a recipe's run, count from 1.
  log_info("{}: {}", precision_.empty() ? fmt::format("step {}", step) : probe::step_text(step),
           is_known ? fmt::format("the same as in step {}", step_of(found_.back()))
                    : probe::overflow_text(first));
  Json entry = {{"step", step}};
  if (!more.is_null()) entry.update(more);
  entry["first"] = std::move(first);
  found_.push_back(std::move(entry));
  write();
}

void OverflowFile::undo(std::int64_t step) {
  for (Json& entry : found_)
    if (step_of(entry) >= step) entry["undone"] = true;
  write();
}

// Whole or not there, whatever ends the program; a step does not wait for the disk.
void OverflowFile::write(bool is_flushed) {
  Json all = {{"task", "overflow"}};
  if (!precision_.empty()) all["precision"] = precision_;
  all["steps"] = steps_;
  all["found"] = found_;
  AtomicFile file(folder_ / kOverflowFile);
  file.write(json_text(all, 1));
  is_flushed ? file.commit() : file.commit_unflushed();
  is_written_ = true;
  written_at_ = monotonic_seconds();
}

void OverflowFile::finish() {
  if (!is_written_) write();
}

}  // namespace aloft
