// The trends of a run ([monitor]): of steps that are looked at the numbers of each layer, and what
// the rules find. docs/trends.md.
//
// What a rule remembers is in no checkpoint: metrics.jsonl has every loss and every look, to the
// digits that the rules go by, and ends where the run goes on. Reading it again is as if the run
// had never stopped.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/file.h"
#include "frontend/ports.h"
#include "observe/trends/trend_reader.h"
#include "observe/trends/trend_watch.h"
#include "run/events.h"
#include "train/runner.h"
#include "train/session.h"

namespace aloft {

class TrendMonitor {
 public:
  // `session` and `runner`, whose programs have their memory where it has some, outlive this.
  // `folder`: the run's.
  TrendMonitor(const Session& session, Runner& runner, Path folder);

  // Begins anew with what metrics.jsonl says, which ends with the step behind which the run stands.
  // DataError E0601.
  void remember();

  struct Seen {
    std::vector<LayerTrends> layers;  // empty: the step was not looked at
    std::vector<TrendAlert> alerts;
  };
  // Of the step that has just run.
  Seen see(const StepDone& step);

 private:
  bool is_search(double loss, double loss_scale, bool skipped) const;
  std::vector<LayerTrends> layers_at(std::int64_t number, double gradient_factor) const;
  const Recipe& recipe() const { return session_.recipe; }

  const Session& session_;
  const Runner& runner_;
  Path folder_;
  // Of a compiled program that looks; what there is in an eager step, each says for itself.
  struct Looking {
    trends::TrendReader reader;
    OutputPort<double> all;
  };
  std::map<Look, Looking> looking_;
  trends::TrendWatch watch_;
};

}  // namespace aloft
