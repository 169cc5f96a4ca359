// How fast a run is now: from its newest steps, so that neither a slow start nor a busy hour long
// ago is counted for ever.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scalar/median.h"

namespace aloft {

class StepRate {
 public:
  void add(double seconds) {
    times_.push_back(seconds);
    if (times_.size() > kWindow) times_.erase(times_.begin());
    total_ += seconds;
    ++steps_;
  }

  // Median of the newest steps, in seconds; 0 before the first.
  double median() const { return scalar::upper_median(times_); }

  // Seconds that `steps` more steps will take at the present rate, with their share of what was
  // done between steps so far (`elapsed` seconds since the start, evaluations and checkpoints
  // included); below 0 before the first step.
  double left(std::int64_t steps, double elapsed) const {
    if (steps_ == 0) return -1;
    const double between = std::max(0.0, elapsed - total_) / static_cast<double>(steps_);
    return static_cast<double>(steps) * (median() + between);
  }

 private:
  static constexpr std::size_t kWindow = 50;
  std::vector<double> times_;
  double total_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace aloft
