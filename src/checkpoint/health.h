// Whether a training state is worth going on from. A state is healthy while
//   - its loss is finite and not far above the loss that the run started with (at most twice that
//     plus one; of one below 0, at most 1): of the last step, and of the state itself, which is
//     measured before a checkpoint, because a step's loss is that of the weights before its update.
//     A step that was skipped has changed no weight: its loss counts only where the state's own is
//     not known;
//   - its newest validation loss is finite;
//   - not more than kStraySkips steps in a row were skipped without reason. The search of a dynamic
//     loss scale is a reason: finite losses, and a scale that can still fall; of a scaler that is
//     the loop's own, one that has fallen since the last skip, and is above 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "scalar/loss_scaler.h"

namespace aloft {

inline constexpr int kStraySkips = 4;

// What is wrong with a loss, or "". Before the run's first finite loss anything finite is right.
std::string problem_of_loss(double loss, std::optional<double> start_loss);

// What to say of a run that ends with this validation loss, or without one with this loss of what
// it is trained on; "" where it has learnt. A little above the start (a fiftieth) may be chance.
// Where the training loss is not above the start, only a validation loss far above it is said.
std::string setback_of_loss(double training_loss, std::optional<double> validation_loss,
                            std::optional<double> start_loss);

// Whether a skipped step belongs to the search of a dynamic loss scale: a finite loss, and a scale
// that can still fall.
bool is_of_search(const scalar::ScalerRule& rule, double loss, double loss_scale);

class Health {
 public:
  // What kept() gave of the run that is resumed; else the first finite loss becomes `start_loss`.
  explicit Health(const scalar::ScalerRule& rule, std::optional<double> start_loss = {},
                  std::int64_t stray_skips = 0);

  void step(double loss, double loss_scale, bool skipped);
  void validation(double loss);

  // The same of a run that began with this loss.
  Health since(std::optional<double> start_loss) const;

  // Why nobody should go on from here; "" where all is well. `state_loss`: of the state as it is
  // now, where it was measured.
  std::string problem(std::optional<double> state_loss = {}) const;
  // setback_of_loss() of a run that ends. A step's loss is that of the weights before it: where
  // validation ends above the start, `measure` says the loss of those of now, on the batch that the
  // run began with, if it can.
  std::string setback(double last_loss, std::optional<double> validation_loss,
                      const std::function<std::optional<double>()>& measure) const;
  std::optional<double> start_loss() const { return start_loss_; }
  // How many steps in a row up to now had no finite loss, or were skipped and no search explains
  // it.
  std::int64_t bad_steps() const { return std::max(bad_losses_, stray_skips_); }
  // What a checkpoint keeps: start_loss(), and how many steps in a row up to now were skipped that
  // no search explains.
  std::pair<std::optional<double>, std::int64_t> kept() const {
    return {start_loss_, stray_skips_};
  }

 private:
  bool is_of_own_search(double loss, double loss_scale) const;

  scalar::ScalerRule rule_;
  std::optional<double> start_loss_, last_loss_, validation_;
  bool last_skipped_ = false;
  double last_scale_ = 1;
  std::int64_t stray_skips_ = 0, bad_losses_ = 0;
};

}  // namespace aloft
