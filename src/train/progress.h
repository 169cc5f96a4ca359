// The progress line: redrawn in place on a terminal, now and then a plain line elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "train/metrics.h"
#include "train/step_rate.h"

namespace aloft {

class Progress {
 public:
  Progress(std::int64_t last_step, bool quiet);
  void step(const StepRecord& record, std::int64_t skips);
  // Ends the line in place, so that something else can be printed.
  void pause();

 private:
  // In less than `width` columns.
  std::string text(const StepRecord& record, std::int64_t skips, std::size_t width) const;
  void show_skip(const StepRecord& record);

  std::int64_t last_;
  bool quiet_, terminal_;
  double smoothed_ = 0, weight_ = 0;  // exponential mean of the losses, and its bias correction
  StepRate rate_;
  double started_, drawn_ = 0;
  double time_ = -1;  // spent in steps, as the newest record says; below 0 before the first
  std::int64_t printed_step_ = 0;
  std::int64_t skips_in_row_ = 0;
  std::size_t width_ = 0;
};

}  // namespace aloft
