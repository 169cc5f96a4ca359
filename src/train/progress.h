// The progress line: redrawn in place on a terminal, now and then a plain line elsewhere.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "train/metrics.h"
#include "train/step_rate.h"

namespace aloft {

class Progress {
 public:
  Progress(std::int64_t last_step, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Before each step. Of a first one that lasts a terminal shows that it is running.
  void begin(std::int64_t step);
  void step(const StepRecord& record, std::int64_t skips);
  // Ends the line in place, so that something else can be printed.
  void pause();

 private:
  // In less than `width` columns.
  std::string text(const StepRecord& record, std::int64_t skips, std::size_t width) const;
  void show_skip(const StepRecord& record);
  void show_waiting(std::int64_t step, const std::stop_token& done);
  void draw(const std::string& line);

  std::int64_t last_;
  bool quiet_, terminal_;
  double smoothed_ = 0, weight_ = 0;  // exponential mean of the losses, and its bias correction
  StepRate rate_;
  double started_, drawn_ = 0;
  double time_ = -1;  // spent in steps, as the newest record says; below 0 before the first
  std::int64_t tokens_ = 0;
  double tokens_per_s_ = 0;  // at the rate of the newest steps, as the time left
  std::int64_t printed_step_ = 0;
  std::int64_t skips_in_row_ = 0;
  std::size_t width_ = 0;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread waiting_;  // with the first step; what it draws is read behind its end
};

}  // namespace aloft
