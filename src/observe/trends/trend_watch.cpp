#include "observe/trends/trend_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/terminal.h"
#include "scalar/median.h"

namespace aloft::trends {

using enum Trend;

namespace {

constexpr const char *kNormJump = "norm_jump", *kDeadLayer = "dead_layer",
                     *kSaturation = "saturation", *kNan = "nan", *kLossSpike = "loss_spike";

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Of a window that is full; NaN before that.
double usual_of(const std::deque<double>& values, const Limit& limit) {
  if (limit.window == 0 || std::ssize(values) < limit.window) return kUnknown;
  return scalar::lower_median({values.begin(), values.end()});
}

void remember(std::deque<double>& values, double value, const Limit& limit) {
  values.push_back(value);
  while (std::ssize(values) > limit.window) values.pop_front();
}

// How often in a row, this time included; whether that makes an alert.
bool completes(std::int64_t& in_a_row, bool holds, const Limit& limit) {
  in_a_row = holds ? in_a_row + 1 : 0;
  return holds && limit.window > 0 && in_a_row == limit.window;
}

std::string in_looks(std::int64_t looks) {
  return looks > 1 ? fmt::format(", in {} looks in a row", looks) : "";
}

}  // namespace

std::string advice_on(std::string_view rule, const std::string& run, std::int64_t step) {
  if (rule == kNormJump)
    return "look at the batch of the step and at the learning rate; a longer schedule.warmup, or "
           "train.on_spike = \"rollback\", which passes the batch over";
  if (rule == kDeadLayer)
    return "look at how the layer begins, whether what it gives is used, and at its learning rate: "
           "it learns nothing";
  if (rule == kSaturation)
    return "precision.level = \"O2:bf16\", or the layer in precision.fp32_layers; of gradients a "
           "lower loss scale";
  if (rule == kNan)
    return fmt::format(
        "aloft probe run {} --at {} --task overflow --out DIR names the op where it begins "
        "(docs/find-a-nan.md)",
        in_shell(run), step);
  if (rule == kLossSpike)
    return "a lower optimizer.lr or a longer schedule.warmup; train.on_spike = \"rollback\" goes "
           "back and passes the data over";
  return "";
}

void TrendWatch::raise(const char* rule, const std::string& layer, double value, std::string text,
                       bool is_of_gradients) {
  (is_of_gradients ? of_gradients_ : alerts_).push_back({rule, layer, value, std::move(text)});
}

std::vector<TrendAlert> TrendWatch::step(double loss, bool is_search) {
  is_search_ = is_search;
  const bool is_finite = std::isfinite(loss);
  if (completes(bad_losses_, !is_finite, limits_.nan))
    raise(kNan, "", kUnknown, "the loss is not finite");
  if (is_finite) {
    // Losses below 0 have no multiples that are above them: what counts is the distance.
    const Limit& limit = limits_.loss_spike;
    // Until there are as many as the window, the first one says where the run began: training
    // lowers losses.
    const double median = usual_of(losses_, limit);
    const bool has_median = !std::isnan(median);
    const bool has_first = limit.window > 0 && !losses_.empty() && losses_.front() != 0;
    const double usual = has_median ? median : has_first ? losses_.front() : kUnknown;
    const bool is_high = loss - usual > (limit.threshold - 1) * std::abs(usual);
    if (is_high && !is_spike_)
      raise(kLossSpike, "", loss,
            has_median
                ? fmt::format("the loss is {:.4g}, and the median of the last {} steps {:.4g}",
                              loss, limit.window, usual)
                : fmt::format("the loss is {:.4g}, and that of the first step was {:.4g}", loss,
                              usual));
    is_spike_ = is_high;
    remember(losses_, loss, limit);
  }
  return std::exchange(alerts_, {});
}

std::vector<TrendAlert> TrendWatch::look(const std::vector<LayerTrends>& layers) {
  const bool learns = std::ranges::any_of(
      layers, [](const LayerTrends& t) { return t[GradNorm] && *t[GradNorm] != 0; });
  for (const LayerTrends& t : layers) {
    Past& past = past_[t.layer];
    judge_norm(t, past);
    judge_zeros(t, past, learns);
    judge_saturation(t, past);
    judge_nan(t, past);
  }
  for (TrendAlert& alert : of_gradients_) alerts_.push_back(std::move(alert));
  of_gradients_.clear();
  return std::exchange(alerts_, {});
}

void TrendWatch::judge_norm(const LayerTrends& t, Past& past) {
  const double norm = t[GradNorm].value_or(kUnknown);
  if (!std::isfinite(norm)) return;
  const Limit& limit = limits_.norm_jump;
  const double usual = usual_of(past.norms, limit);
  const bool is_high = usual > 0 && norm > limit.threshold * usual;
  if (is_high && !past.is_jump)
    raise(kNormJump, t.layer, norm,
          fmt::format("the norm of its gradients is {:.3g}, {:.3g} times the median of the last {} "
                      "looks",
                      norm, norm / usual, limit.window),
          true);
  past.is_jump = is_high;
  remember(past.norms, norm, limit);
}

void TrendWatch::judge_zeros(const LayerTrends& t, Past& past, bool learns) {
  const Limit& limit = limits_.dead_layer;
  const double zeros = t[OutputZeros].value_or(0);
  const bool is_still = learns && t[GradNorm] == 0.0;
  if (!completes(past.dead, is_still || zeros >= limit.threshold, limit)) return;
  const std::string what = is_still ? "its gradients are all 0"
                                    : fmt::format("{:.4g} % of what it gives is 0", 100 * zeros);
  raise(kDeadLayer, t.layer, is_still ? 1 : zeros, what + in_looks(limit.window), is_still);
}

void TrendWatch::judge_saturation(const LayerTrends& t, Past& past) {
  const Limit& limit = limits_.saturation;
  const double outputs = t[OutputSaturated].value_or(0);
  const double gradients = is_search_ ? 0 : t[GradientSaturated].value_or(0);
  const double share = std::max(outputs, gradients);
  if (!completes(past.saturated, share > limit.threshold, limit)) return;
  raise(kSaturation, t.layer, share,
        fmt::format("{:.3g} % of {} lies at the largest number of its type or beyond{}",
                    100 * share, outputs > limit.threshold ? "what it gives" : "its gradients",
                    in_looks(limit.window)),
        outputs <= limit.threshold);
}

void TrendWatch::judge_nan(const LayerTrends& t, Past& past) {
  const Limit& limit = limits_.nan;
  const double outputs = t[OutputNan].value_or(0);
  const double gradients = is_search_ ? 0 : t[GradientNan].value_or(0);
  const bool is_weight = t[WeightNorm] && std::isnan(*t[WeightNorm]);
  const double count = std::max(outputs, gradients);
  if (!completes(past.nan, is_weight || count > limit.threshold, limit)) return;
  const std::string what = is_weight     ? "its weights are not finite"
                           : outputs > 0 ? fmt::format("{:.0f} NaN in what it gives", outputs)
                                         : fmt::format("{:.0f} NaN in its gradients", gradients);
  raise(kNan, t.layer, is_weight ? kUnknown : count, what + in_looks(limit.window),
        !is_weight && outputs == 0);
}

}  // namespace aloft::trends
