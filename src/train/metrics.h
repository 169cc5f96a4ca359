// The record of a run's numbers: metrics.jsonl, one object a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/append_file.h"
#include "run/listener.h"

namespace aloft {

// Where a run goes on: behind so many steps, and whether its state was evaluated there before it
// was saved. What an evaluation that came after the save wrote is written again, or never.
struct ResumedAt {
  std::int64_t step = 0;
  bool is_evaluated = true;
  std::int64_t evaluations = 0;  // that have a line in the record so far; 0 where nobody knows
  std::int64_t rollbacks = 0;    // of the run so far; their lines stay, whatever their steps
};

// Whole lines of metrics.jsonl of steps up to there.
struct KeptLines {
  std::string text;
  std::int64_t steps = 0, evaluations = 0;  // that have a line of their own, where it belongs
  std::int64_t rollbacks = 0;               // up to which all that are kept have one
  std::int64_t damaged = 0;                 // lines that were none
};
KeptLines lines_up_to(std::string_view text, ResumedAt at);

class Metrics : public Listener {
 public:
  std::string makes() const override { return "metrics.jsonl"; }
  // Appends to metrics.jsonl of the run's directory. A run that goes on first cuts everything later
  // off it. EnvironmentError E0603, E0606.
  void run_begun(const RunBegun& e, Control& run) override;
  void step_done(const StepDone& e, Control& run) override;
  void trends_seen(const TrendsSeen& e, Control& run) override;
  // The lines of the steps that are made once more go, and one that says so comes. A kill before it
  // is there costs nothing: the checkpoint knows of it, and run_begun makes up for it.
  // EnvironmentError E0603, E0606.
  void rolled_back(const RolledBack& e) override;
  void evaluation_done(const EvaluationDone& e, Control& run) override;
  // A run that goes on from the checkpoint has every line up to it, also behind a power loss; its
  // manifest says how many evaluations have one. EnvironmentError E0603.
  void checkpoint_begun(const CheckpointBegun& e) override;
  void run_closing(const RunClosing& e) override;

 private:
  void open_behind(const ResumedAt& at, const std::vector<Rollback>& rollbacks);

  Path folder_;                     // the run's
  std::string unit_, rate_;         // of the task: "tokens", "tokens_per_s"
  std::int64_t evaluations_ = 0;    // that have a line in the record
  std::optional<AppendFile> file_;  // once the run has begun
};

}  // namespace aloft
