// Step times from which a run's rate is taken: the newest, so that a long run shows its present
// speed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace aloft {

class StepRate {
 public:
  void add(double seconds) {
    times_.push_back(seconds);
    if (times_.size() > kWindow) times_.erase(times_.begin());
  }
  // Seconds a step; 0 before the first.
  double median() const {
    if (times_.empty()) return 0;
    std::vector<double> sorted = times_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }

 private:
  static constexpr std::size_t kWindow = 50;
  std::vector<double> times_;
};

}  // namespace aloft
