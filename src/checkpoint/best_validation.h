// The best validation loss of a run so far, and for how long there has been no better one: what
// keeps the best checkpoint and stops a run early.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace aloft {

struct BestValidation {
  double loss = 0;
  std::int64_t step = 0;
  std::int64_t evaluations_since = 0;
  friend bool operator==(const BestValidation&, const BestValidation&) = default;
};

// After an evaluation at `step`. Only what is lower is better, and only what is finite is a loss.
// One that is not `due`, at the end of a run, may be the best, and takes no patience.
inline std::optional<BestValidation> after_evaluation(std::optional<BestValidation> best,
                                                      double loss, std::int64_t step,
                                                      bool is_due = true) {
  if (std::isfinite(loss) && (!best || loss < best->loss)) return BestValidation{loss, step, 0};
  if (best && is_due) ++best->evaluations_since;
  return best;
}

// Whether so many evaluations in a row brought nothing better; patience 0 never ends.
inline bool patience_is_over(const std::optional<BestValidation>& best, std::int64_t patience) {
  return patience > 0 && best && best->evaluations_since >= patience;
}

}  // namespace aloft
