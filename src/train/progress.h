// The progress line: redrawn in place on a terminal, now and then a plain line elsewhere.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "run/listener.h"
#include "train/session.h"
#include "train/step_rate.h"

namespace aloft {

class Progress : public Listener {
 public:
  // The session outlives this. `steps`: counted to, where the run ends before its recipe does; 0:
  // to the recipe's last.
  Progress(const Session& session, bool quiet, std::int64_t steps = 0);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void run_begun(const RunBegun& e, Control& run) override;
  // Of a first step that lasts a terminal shows that it is running.
  void step_begun(const StepBegun& e) override;
  void step_done(const StepDone& e, Control& run) override;
  // The alerts.
  void trends_seen(const TrendsSeen& e, Control& run) override;
  void rolled_back(const RolledBack& e) override;
  void evaluation_begun(const EvaluationBegun& e) override;
  // Says why, unless the run was as long as it should be.
  void steps_over(const StepsOver& e) override;

 private:
  // Ends the line in place, so that something else can be printed.
  void pause();
  // In less than `width` columns.
  std::string text(const StepDone& e, std::size_t width) const;
  void show_skip(const StepDone& e);
  void show_waiting(std::int64_t step, const std::stop_token& done);
  void draw(const std::string& line);

  const Session& session_;
  const std::int64_t wanted_;
  std::int64_t last_ = 0;
  bool quiet_, terminal_;
  double smoothed_ = 0, weight_ = 0;  // exponential mean of the losses, and its bias correction
  StepRate rate_;
  double started_ = 0, drawn_ = 0;
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
