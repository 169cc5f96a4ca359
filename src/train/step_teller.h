// What a run tells its listeners of a step that it has made: its numbers, that it was skipped, what
// the monitor says of it.
#pragma once

#include <cstdint>
#include <optional>

#include "run/listeners.h"
#include "train/runner.h"
#include "train/session.h"
#include "train/trend_monitor.h"

namespace aloft {

class StepTeller {
 public:
  // Both outlive this.
  StepTeller(Listeners& listeners, Control& control) : listeners_(listeners), control_(control) {}

  // When the listeners have heard that the run begins. `session` and `runner` outlive what is told.
  // DataError E0601.
  void begin(const Session& session, Runner& runner, const Path& folder);
  void tell(const StepDone& step);
  // When they have heard that the run goes back to a checkpoint. DataError E0601.
  void go_back();

 private:
  Listeners& listeners_;
  Control& control_;
  std::int64_t skips_in_a_row_ = 0;
  std::optional<TrendMonitor> monitor_;  // where the recipe asks for one
};

}  // namespace aloft
