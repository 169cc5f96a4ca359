#include "train/metrics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "checkpoint/manifest.h"
#include "observe/trends/trend_lines.h"
#include "run/validation_loss_json.h"
#include "tasks/task.h"

namespace aloft {
namespace {

using nlohmann::json;

// JSON has no infinity and no NaN: they become null.
json number(double v) { return std::isfinite(v) ? json(v) : json(nullptr); }

constexpr const char* kLines = "metrics.jsonl";

// Takes what lies beyond away from a run's record; what is left. The lines were on the disk before
// the checkpoint was: that some are gone is somebody else's doing, and said.
KeptLines cut_back(const Path& folder, ResumedAt at) {
  const Path path = folder / kLines;
  const std::string text = path_exists(path) ? read_file(path, std::uint64_t{8} << 30) : "";
  const bool is_new = at.step == 0 && at.rollbacks == 0;
  KeptLines lines = is_new ? KeptLines() : lines_up_to(text, at);
  if (lines.damaged > 0)
    log_warning("{} lines of {} are damaged and are left out", lines.damaged, path.string());
  const auto miss = [&](const char* what, std::int64_t have, std::int64_t want) {
    if (have < want)
      log_warning("{} has no line of {} of the {} {} so far", path.string(), want - have, want,
                  what);
  };
  miss("steps", lines.steps, at.step);
  miss("evaluations", lines.evaluations, at.evaluations);
  if (lines.text != text) write_file_atomic(path, lines.text);
  return lines;
}

// Counts steps and evaluations that stand where they were written: each step has its line once, an
// evaluation lies between its step's line and the next one's.
class LinesInOrder {
 public:
  void step(std::int64_t number) {
    if (evaluated_ >= number && evaluated_ >= 0) --evaluations_;
    evaluated_ = -1;
    if (number > 0) steps_.push_back(number);
    at_ = number;
  }
  void evaluation(std::int64_t number) {
    if (number < at_ || number == evaluated_) return;  // of another step, or said twice
    ++evaluations_;
    evaluated_ = number;
  }
  std::int64_t steps() const {
    std::vector<std::int64_t> once = steps_;
    std::sort(once.begin(), once.end());
    return std::unique(once.begin(), once.end()) - once.begin();
  }
  std::int64_t evaluations() const { return evaluations_; }

 private:
  std::vector<std::int64_t> steps_;
  std::int64_t at_ = 0, evaluations_ = 0;
  std::int64_t evaluated_ = -1;  // behind the last step's line; -1: none
};

}  // namespace

KeptLines lines_up_to(std::string_view text, ResumedAt last) {
  KeptLines out;
  LinesInOrder in_order;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string_view::npos;
       at = end + 1) {  // behind the last end lies a line that a crash cut short
    const std::string_view line = text.substr(at, end + 1 - at);
    const json j = parse_json(line);
    const auto at_step = j.is_object() ? j.find("step") : j.end();
    if (at_step == j.end() || !at_step->is_number_integer()) {
      ++out.damaged;
      continue;
    }
    if (const auto rollback = j.find("rollback"); rollback != j.end()) {
      if (!rollback->is_number_integer() || *rollback != out.rollbacks + 1) continue;
      if (*rollback > last.rollbacks) continue;
      ++out.rollbacks;
      out.text += line;
      continue;
    }
    const auto step = at_step->get<std::int64_t>();
    const bool is_later_evaluation =
        step == last.step && !last.is_evaluated && j.contains("val_loss");
    if (step > last.step || is_later_evaluation) continue;
    out.text += line;
    if (j.contains("loss")) in_order.step(step);
    if (j.contains("val_loss")) in_order.evaluation(step);
  }
  out.steps = in_order.steps();
  out.evaluations = in_order.evaluations();
  return out;
}

void Metrics::run_begun(const RunBegun& e, Control&) {
  unit_ = e.task.unit;
  rate_ = e.task.rate;
  folder_ = e.folder;
  open_behind({e.step, e.is_evaluated, e.evaluations}, e.rollbacks);
}

void Metrics::open_behind(const ResumedAt& at, const std::vector<Rollback>& rollbacks) {
  ResumedAt with = at;
  with.rollbacks = static_cast<std::int64_t>(rollbacks.size());
  const KeptLines kept = cut_back(folder_, with);
  evaluations_ = kept.evaluations;
  file_.emplace(folder_ / kLines);
  for (std::int64_t i = kept.rollbacks; i < with.rollbacks; ++i) {
    const Rollback& r = rollbacks[static_cast<std::size_t>(i)];
    const json j = {{"rollback", i + 1},        {"step", r.to},
                    {"from_step", r.from},      {"reason", r.reason},
                    {"data_from", r.data_from}, {"data_to", r.data_to}};
    file_->write(j.dump() + "\n");
  }
}

void Metrics::rolled_back(const RolledBack& e) {
  file_->flush();
  file_.reset();
  open_behind({e.step, e.is_evaluated, e.evaluations}, e.rollbacks);
}

void Metrics::step_done(const StepDone& e, Control&) {
  json j = {{"step", e.step},
            {"loss", number(e.loss)},
            {"lr", e.lr},
            {"grad_norm", number(e.grad_norm)},
            {"loss_scale", e.loss_scale},
            {"skipped", e.skipped},
            {unit_, e.tokens},
            {rate_, e.tokens_per_s},
            {"time_s", e.time_s}};
  if (e.skipped) j["culprit"] = e.culprit;
  // Asking whether a save is under way takes some nanoseconds, which are none of it.
  constexpr double kLeast = 1e-4;
  if (e.saving_s >= kLeast) j["saving_s"] = e.saving_s;
  file_->write(j.dump() + "\n");
}

void Metrics::trends_seen(const TrendsSeen& e, Control&) {
  if (!e.layers.empty()) file_->write(trends::line_of(e.step, e.layers).dump() + "\n");
  for (const TrendAlert& alert : e.alerts)
    file_->write(trends::line_of(e.step, alert).dump() + "\n");
  if (!e.alerts.empty()) file_->flush();
}

void Metrics::evaluation_done(const EvaluationDone& e, Control&) {
  if (e.is_repeated) return;
  json j = json_of(e.validation);
  j["step"] = e.step;
  file_->write(j.dump() + "\n");
  ++evaluations_;
  file_->flush();
}

void Metrics::checkpoint_begun(const CheckpointBegun& e) {
  file_->sync();  // a run that goes on from here has every line up to it
  e.meta.evaluations = evaluations_;
}

void Metrics::run_closing(const RunClosing& e) {
  try {
    file_->flush();
  } catch (const Error& error) {
    if (!e.error) throw;
    log_warning("the metrics are not whole: {}", error.what());
  }
}

}  // namespace aloft
