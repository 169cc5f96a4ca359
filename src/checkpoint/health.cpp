#include "checkpoint/health.h"

#include <fmt/format.h>

#include <cmath>

namespace aloft {

std::string problem_of_loss(double loss, std::optional<double> start_loss) {
  if (!std::isfinite(loss)) return std::isnan(loss) ? "the loss is NaN" : "the loss is infinite";
  if (start_loss && loss > *start_loss + std::abs(*start_loss) + 1)  // one below 0 may rise, too
    return fmt::format("the loss is {:.4g}, far above the {:.4g} that the run started with", loss,
                       *start_loss);
  return "";
}

std::string setback_of_loss(double training_loss, std::optional<double> validation_loss,
                            std::optional<double> start_loss) {
  const double end = validation_loss.value_or(training_loss);
  if (!start_loss || end <= 1.02 * *start_loss) return "";
  // What was trained on is no worse: what validation holds may have been harder from the start.
  if (training_loss <= 1.02 * *start_loss)
    return end <= 1.2 * *start_loss
               ? ""
               : fmt::format(
                     "the run ends with a validation loss of {:.4g}, far above the training loss "
                     "of {:.4g} that it began with, and a training loss of {:.4g}: validation "
                     "holds something else, or what was learnt is of the training data alone, for "
                     "which a lower learning rate or more data may help",
                     end, *start_loss, training_loss);
  return fmt::format(
      "the run ends with a {} loss of {:.4g} and began with a training loss of {:.4g}: it has "
      "learnt nothing; {} may help",
      validation_loss ? "validation" : "training", end, *start_loss,
      end < 1.2 * *start_loss ? "another learning rate (higher, where the loss hardly moves)"
                              : "a lower learning rate or a longer warm-up");
}

bool is_of_search(const scalar::ScalerRule& rule, double loss, double loss_scale) {
  return rule.kind == scalar::ScalerKind::Dynamic && std::isfinite(loss) && loss_scale > rule.min;
}

Health::Health(const scalar::ScalerRule& rule, std::optional<double> start_loss,
               std::int64_t stray_skips)
    : rule_(rule), start_loss_(start_loss), stray_skips_(stray_skips) {}

// What a scaler of the loop's own does shows in the scale alone: one that searches has lowered it
// behind the skip before.
bool Health::is_of_own_search(double loss, double loss_scale) const {
  return rule_.kind == scalar::ScalerKind::None && std::isfinite(loss) && loss_scale > 1 &&
         (!last_skipped_ || loss_scale < last_scale_);
}

void Health::step(double loss, double loss_scale, bool skipped) {
  const bool searches = is_of_search(rule_, loss, loss_scale) || is_of_own_search(loss, loss_scale);
  last_loss_ = loss;
  last_skipped_ = skipped;
  last_scale_ = loss_scale;
  bad_losses_ = std::isfinite(loss) ? 0 : bad_losses_ + 1;
  if (!start_loss_ && std::isfinite(loss)) start_loss_ = loss;
  if (!skipped)
    stray_skips_ = 0;
  else if (!searches)
    ++stray_skips_;
}

Health Health::since(std::optional<double> start_loss) const {
  Health other = *this;
  other.start_loss_ = start_loss;
  return other;
}

void Health::validation(double loss) { validation_ = loss; }

std::string Health::setback(double last_loss, std::optional<double> validation_loss,
                            const std::function<std::optional<double>()>& measure) const {
  if (start_loss_ && validation_loss && *validation_loss > *start_loss_)
    last_loss = measure().value_or(last_loss);
  return setback_of_loss(last_loss, validation_loss, start_loss_);
}

std::string Health::problem(std::optional<double> state_loss) const {
  if (state_loss)
    if (std::string p = problem_of_loss(*state_loss, start_loss_); !p.empty()) return p;
  if (last_loss_ && (!last_skipped_ || !state_loss))
    if (std::string p = problem_of_loss(*last_loss_, start_loss_); !p.empty()) return p;
  if (validation_ && !std::isfinite(*validation_)) return "the validation loss is not finite";
  if (stray_skips_ > kStraySkips)
    return fmt::format("the gradients of {} steps in a row were not finite", stray_skips_);
  return "";
}

}  // namespace aloft
