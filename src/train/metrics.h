// The record of a run: metrics.jsonl, one object a line, and TensorBoard's event files beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/append_file.h"
#include "files/tensorboard.h"
#include "train/validation_loss.h"

namespace aloft {

struct StepRecord {
  std::int64_t step = 0;  // attempted steps so far
  double loss = 0, lr = 0, grad_norm = 0, loss_scale = 1;
  bool skipped = false;
  std::string culprit;      // the parameter whose gradient was not finite; empty: none
  std::int64_t tokens = 0;  // trained on so far
  double tokens_per_s = 0, time_s = 0;
};

// Where a run goes on: behind so many steps, and whether its state was evaluated there before it
// was saved. What an evaluation that came after the save wrote is written again, or never.
struct ResumedAt {
  std::int64_t step = 0;
  bool is_evaluated = true;
  std::int64_t evaluations = 0;  // that have a line in the record so far; 0 where nobody knows
};

// Whole lines of metrics.jsonl of steps up to there.
struct KeptLines {
  std::string text;
  std::int64_t steps = 0, evaluations = 0;  // that have a line of their own, where it belongs
  std::int64_t damaged = 0;                 // lines that were none
};
KeptLines lines_up_to(std::string_view text, ResumedAt at);

class Metrics {
 public:
  // Appends to FOLDER/metrics.jsonl and to an event file of its own. A run that goes on first cuts
  // everything later off these files. EnvironmentError E0603, E0606.
  Metrics(const Path& folder, ResumedAt at);

  void step(const StepRecord& record);
  void evaluation(std::int64_t step, const ValidationLoss& loss);
  // That have a line in the record.
  std::int64_t evaluations() const { return evaluations_; }
  // Readers see all of it; it survives a power loss. To be called before a checkpoint is whole, so
  // that a run that goes on from there has every line up to it. EnvironmentError E0603.
  void flush();
  void sync();

 private:
  void line(const std::string& text);

  std::int64_t evaluations_;
  AppendFile file_;
  TensorBoardWriter board_;
};

}  // namespace aloft
