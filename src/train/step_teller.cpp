#include "train/step_teller.h"

namespace aloft {

void StepTeller::begin(const Session& session, Runner& runner, const Path& folder) {
  if (!session.recipe.monitor.on) return;
  monitor_.emplace(session, runner, folder);
  monitor_->remember();
}

void StepTeller::tell(const StepDone& step) {
  skips_in_a_row_ = step.skipped ? skips_in_a_row_ + 1 : 0;
  listeners_.tell(&Listener::step_done, step, control_);
  if (step.skipped)
    listeners_.tell(&Listener::step_skipped,
                    {step.step, step.culprit, step.loss_scale, step.skips, skips_in_a_row_},
                    control_);
  if (!monitor_) return;
  const TrendMonitor::Seen seen = monitor_->see(step);
  if (!seen.layers.empty() || !seen.alerts.empty())
    listeners_.tell(&Listener::trends_seen, {step.step, seen.layers, seen.alerts}, control_);
}

void StepTeller::go_back() {
  skips_in_a_row_ = 0;
  if (monitor_) monitor_->remember();
}

}  // namespace aloft
