// Ends a run after so many evaluations in a row without a lower validation loss (train.patience).
// It keeps nothing: what it goes by is in every checkpoint, and so in every event.
#pragma once

#include <cstdint>
#include <optional>

#include "run/listener.h"

namespace aloft {

class EarlyStopping : public Listener {
 public:
  // In evaluations, above 0.
  explicit EarlyStopping(std::int64_t patience) : patience_(patience) {}
  std::optional<Stop> over_at(const Standing& standing) const override;
  void run_begun(const RunBegun& e, Control& run) override;
  void rolled_back(const RolledBack& e) override { best_ = e.best; }
  void evaluation_done(const EvaluationDone& e, Control& run) override;
  void step_settled(const StepSettled& e, Control& run) override;

 private:
  void stop_if_over(Control& run) const;

  std::int64_t patience_;
  std::optional<BestValidation> best_;
};

}  // namespace aloft
