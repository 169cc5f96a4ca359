// The rules by which a run's trends raise alerts: docs/trends.md.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "types/trends.h"

namespace aloft::trends {

// What a rule says: from where on, and over how many looks or steps. A window of 0: never.
struct Limit {
  double threshold = 0;
  std::int64_t window = 0;
};
struct Limits {
  Limit norm_jump, dead_layer, saturation, nan, loss_spike;
};

// What to do about an alert of the run in that folder, raised in the step, counted from 0, in a
// sentence; "" of a rule that there is not.
std::string advice_on(std::string_view rule, const std::string& run, std::int64_t step);

// Says what is unusual, by what it was told before: the same steps and looks give the same alerts,
// whoever tells them. An alert is raised once, when what it tells of begins.
class TrendWatch {
 public:
  explicit TrendWatch(const Limits& limits) : limits_(limits) {}

  // Of each step. `is_search`: it was skipped in the search of a loss scale, in which gradients
  // that are not finite are no news (checkpoint/health.h).
  std::vector<TrendAlert> step(double loss, bool is_search);
  // Of a step that was looked at, behind its step(): what begins in outputs first, in the order in
  // which layers give them, and behind it what is seen in gradients, which go through all of them.
  std::vector<TrendAlert> look(const std::vector<LayerTrends>& layers);

 private:
  // What is remembered of a layer: the norms of its gradients in the looks before, oldest first,
  // and for how many looks something has held, the newest one included.
  struct Past {
    std::deque<double> norms;
    bool is_jump = false;
    std::int64_t dead = 0, saturated = 0, nan = 0;
  };
  void judge_norm(const LayerTrends& t, Past& past);
  // `learns`: whether any layer has gradients.
  void judge_zeros(const LayerTrends& t, Past& past, bool learns);
  void judge_saturation(const LayerTrends& t, Past& past);
  void judge_nan(const LayerTrends& t, Past& past);
  void raise(const char* rule, const std::string& layer, double value, std::string text,
             bool is_of_gradients = false);

  Limits limits_;
  std::deque<double> losses_;  // finite ones, oldest first
  bool is_spike_ = false, is_search_ = false;
  std::int64_t bad_losses_ = 0;  // in a row
  std::map<std::string, Past> past_;
  std::vector<TrendAlert> alerts_, of_gradients_;
};

}  // namespace aloft::trends
