#include "train/early_stopping.h"

#include <fmt/format.h>

namespace aloft {
namespace {

constexpr const char* kAdvice = "a larger train.patience";

}  // namespace

std::optional<Stop> EarlyStopping::over_at(const Standing& standing) const {
  if (!patience_is_over(standing.best, patience_)) return std::nullopt;
  return Stop{"its patience is over", kAdvice};
}

void EarlyStopping::run_begun(const RunBegun& e, Control&) { best_ = e.best; }

void EarlyStopping::evaluation_done(const EvaluationDone& e, Control& run) {
  best_ = e.best;
  stop_if_over(run);
}

// A run that goes on may have been over already, and lack its end alone.
void EarlyStopping::step_settled(const StepSettled&, Control& run) { stop_if_over(run); }

void EarlyStopping::stop_if_over(Control& run) const {
  if (patience_is_over(best_, patience_))
    run.stop(fmt::format("{} evaluations without a better validation loss than {:.4f} of step {}",
                         best_->evaluations_since, best_->loss, best_->step),
             kAdvice);
}

}  // namespace aloft
