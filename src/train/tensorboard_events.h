// TensorBoard's event files of a run, beside its metrics.jsonl: docs/tensorboard.md.
#pragma once

#include <optional>
#include <string>

#include "files/tensorboard.h"
#include "run/listener.h"

namespace aloft {

class TensorBoardEvents : public Listener {
 public:
  // Adds a file to the run's directory. A run that goes on first cuts everything later off those
  // that are there. EnvironmentError E0603, E0606.
  void run_begun(const RunBegun& e, Control& run) override;
  void step_done(const StepDone& e, Control& run) override;
  void trends_seen(const TrendsSeen& e, Control& run) override;
  // What lies behind the checkpoint goes, as where a run goes on from it.
  void rolled_back(const RolledBack& e) override;
  void evaluation_done(const EvaluationDone& e, Control& run) override;
  void checkpoint_begun(const CheckpointBegun& e) override;
  void run_closing(const RunClosing& e) override;

 private:
  void open_behind(std::int64_t step, bool is_evaluated);

  Path folder_;                             // the run's
  std::string rate_;                        // "train/tokens_per_s"
  std::optional<TensorBoardWriter> board_;  // once the run has begun
};

}  // namespace aloft
