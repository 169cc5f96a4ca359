#include "train/step_judge.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "checkpoint/health.h"
#include "scalar/median.h"

namespace aloft {

StepJudge::StepJudge(const TrainSection& rules, const scalar::ScalerRule& scaler,
                     std::vector<double> losses)
    : rules_(rules), scaler_(scaler), losses_(std::move(losses)) {
  const auto window = static_cast<std::size_t>(rules_.spike_window);
  if (rules_.on_spike != "rollback")
    losses_.clear();
  else if (losses_.size() > window)  // of a run that compared with more
    losses_.erase(losses_.begin(), losses_.end() - rules_.spike_window);
}

std::string StepJudge::not_finite(const StepDone& step) const {
  if (std::isfinite(step.loss) && !step.skipped) return "";
  if (is_of_search(scaler_, step.loss, step.loss_scale)) return "";
  if (!std::isfinite(step.loss))
    return std::isnan(step.loss) ? "the loss is NaN" : "the loss is infinite";
  return step.culprit.empty() ? "the gradients are not finite"
                              : fmt::format("the gradient of {} is not finite", step.culprit);
}

// Losses below 0 have no multiples that are above them: what counts is the distance, in medians.
std::string StepJudge::spike(double loss) const {
  if (static_cast<std::int64_t>(losses_.size()) < rules_.spike_window) return "";
  const double usual = scalar::lower_median(losses_);
  if (!(loss - usual > (rules_.spike_factor - 1) * std::abs(usual))) return "";
  return fmt::format("the loss is {:.4g}, and the median of the last {} steps {:.4g}", loss,
                     losses_.size(), usual);
}

std::optional<StepJudge::Verdict> StepJudge::judge(const StepDone& step,
                                                   const std::string& ruined) {
  if (rules_.on_nonfinite != "skip") {
    std::string reason = not_finite(step);
    if (reason.empty() && !ruined.empty())
      reason = fmt::format("the running statistics {} are not finite", ruined);
    if (!reason.empty())
      return Verdict{rules_.on_nonfinite == "stop" ? Answer::Stop : Answer::Rollback,
                     std::move(reason)};
  }
  if (rules_.on_spike != "rollback" || !std::isfinite(step.loss)) return std::nullopt;
  if (std::string reason = spike(step.loss); !reason.empty())
    return Verdict{Answer::Rollback, std::move(reason)};
  losses_.push_back(step.loss);
  if (static_cast<std::int64_t>(losses_.size()) > rules_.spike_window)
    losses_.erase(losses_.begin());
  return std::nullopt;
}

}  // namespace aloft
