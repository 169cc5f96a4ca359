#include "train/session_timing.h"

#include "base/file.h"
#include "base/log.h"
#include "observe/profile/summary.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"
#include "train/work_of_call.h"

namespace aloft {

SessionTiming::SessionTiming(const ProfileSection& profile)
    : profile_(profile), recorder_(work_of_call) {}

bool SessionTiming::is_timed(std::int64_t step) const {
  return step >= profile_.start && step < profile_.start + profile_.steps;
}

void SessionTiming::step_begins(std::int64_t step) {
  step_ = step;
  if (!is_timed(step)) return;
  recorder_.begin_step(step);
  looking_.emplace(current_device(), recorder_);
}

void SessionTiming::step_is_over(const std::string& folder) {
  if (!looking_) return;
  looking_.reset();
  recorder_.end_step();
  if (!is_timed(step_ + 1)) write(folder);
}

// The step under way is no whole one.
void SessionTiming::stop(const std::string& folder) {
  if (looking_) {
    looking_.reset();
    recorder_.drop_step();
  }
  if (!is_written_ && !recorder_.times().empty()) write(folder);
}

void SessionTiming::write(const std::string& folder) {
  profile::Summary summary = profile::summary_of(recorder_, {});
  summary.device = current_device().name();
  summary.threads = host_threads().count();
  summary.timer_seconds = profile::timer_seconds(current_device());
  make_folder(folder);
  write_file_atomic(Path(folder) / "profile.json", profile::trace_text(recorder_, summary));
  text_ = profile::text_of(summary);
  is_written_ = true;
}

void SessionTiming::tell_if_nothing_was_timed() const {
  if (profile_.steps > 0 && recorder_.times().empty())
    log_warning("a session of observe:: was to time steps from step {} on, and none was made",
                profile_.start);
}

}  // namespace aloft
