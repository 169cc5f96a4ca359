// What a run's rules say of a step behind which it should not simply go on: numbers that are not
// finite (train.on_nonfinite), a loss far above those before it (train.on_spike).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "run/events.h"
#include "scalar/loss_scaler.h"

namespace aloft {

class StepJudge {
 public:
  // `losses`: of the steps before, as losses() gave them when the state was saved.
  StepJudge(const TrainSection& rules, const scalar::ScalerRule& scaler,
            std::vector<double> losses = {});

  // Why the run must not simply go on behind the step; nothing where it may. The search of a loss
  // scale is no trouble.
  enum class Answer { Stop, Rollback };
  struct Verdict {
    Answer answer;
    std::string reason;
  };
  // `ruined`: the running statistics whose values the step has made no numbers (KeptStatistics);
  // "": none.
  std::optional<Verdict> judge(const StepDone& step, const std::string& ruined = "");

  // What a later step is compared with: the finite losses of the last train.spike_window steps,
  // oldest first; none where nobody looks for spikes. A checkpoint keeps them, so that a run that
  // goes on judges as one that was never stopped.
  const std::vector<double>& losses() const { return losses_; }

 private:
  std::string not_finite(const StepDone& step) const;
  std::string spike(double loss) const;

  TrainSection rules_;
  scalar::ScalerRule scaler_;
  std::vector<double> losses_;
};

}  // namespace aloft
