#include "frontend/sums_scale.h"

#include <algorithm>

#include "base/error.h"
#include "frontend/host_count.h"
#include "frontend/loss_scales.h"

namespace aloft {
namespace {

constexpr std::int32_t kUnknown = 0, kNone = 1, kFirst = 2;

std::int32_t version_of(const VariablePtr& scale) {
  return static_cast<std::int32_t>(scale->version & INT32_MAX);
}

std::string words_of(std::int32_t which) {
  return which == kNone ? "without a loss scale" : "with a loss scale";
}

UserError other_scale(const std::string& saw) {
  return UserError("E0808", "the sums of accumulate() have another loss scale than the step")
      .saw(saw)
      .need(
          "scaler.scale(loss) of the scaler that steps for every micro-batch, or for none where "
          "minimize() or amp::step() does")
      .advice("optimizer.zero_grad() drops the sums");
}

}  // namespace

std::int32_t SumsScale::number_of(const VariablePtr& by) const {
  if (!by) return kNone;
  const auto is_it = [&](const std::weak_ptr<Variable>& one) { return one.lock() == by; };
  const auto at = std::ranges::find_if(*known_, is_it);
  const auto number = kFirst + static_cast<std::int32_t>(at - known_->begin());
  if (at == known_->end()) known_->push_back(by);
  return number;
}

void SumsScale::add(const VariablePtr& by) const {
  const std::int32_t its = number_of(by);
  if (by)
    count_on_host({.next =
                       [by, which = which_](std::int32_t before) {
                         return *which == kUnknown ? version_of(by)
                                                   : std::min(before, version_of(by));
                       },
                   .beside = version_});
  count_on_host({.next =
                     [its](std::int32_t now) {
                       if (now != kUnknown && now != its)
                         throw other_scale(
                             "a micro-batch multiplied " + words_of(its) + ", behind others " +
                             words_of(now) +
                             (now > kNone && its > kNone ? " of another scaler" : ""));
                       return its;
                     },
                 .beside = which_});
}

void SumsScale::check(const VariablePtr& by, std::uint64_t since) const {
  const std::int32_t its = number_of(by);
  const auto oldest = static_cast<std::int32_t>(since & INT32_MAX);
  count_on_host({.next =
                     [its, oldest, version = version_](std::int32_t now) {
                       if (now != kUnknown && now != its)
                         throw other_scale("sums of losses multiplied " + words_of(now) +
                                           ", and a step that divides " +
                                           (its == kNone ? "by none" : "by that of its scaler"));
                       if (now >= kFirst && *version < oldest)
                         throw other_scale(
                             "sums of losses multiplied with a value that the scale no longer has");
                       return now;
                     },
                 .beside = which_});
}

void SumsScale::forget() const {
  count_on_host({.next = [](std::int32_t) { return kUnknown; }, .beside = which_});
}

const SumsScale& sums_scale(const Optimizer& optimizer) {
  return optimizer.loss_scales().sums[optimizer.micro_batches()];
}

VariablePtr own_scale(const Optimizer& optimizer) {
  return optimizer.scaler().kind == scalar::ScalerKind::None ? nullptr : optimizer.scale;
}

}  // namespace aloft
