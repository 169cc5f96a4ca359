#include "frontend/give_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/output.h"
#include "base/text.h"
#include "frontend/loss_scales.h"
#include "runtime/buffer.h"

namespace aloft {
namespace {

// What the decision needs, apart from an Optimizer that a compiled program may outlive.
struct Limit {
  VariablePtr overflow_run, scale;
  scalar::ScalerRule rule;
  std::vector<std::string> names;
  std::optional<std::ptrdiff_t> said_loss = {};  // whose overflows are said, by its number

  void check(std::int32_t culprit) const {
    scalar::ScalerState state;
    state.overflow_run = overflow_run->buffer->read_one<std::int32_t>();
    if (said_loss && state.overflow_run > 0)
      print_talk(
          "amp: gradients of loss {} are not finite: their step is skipped, its scale is {} from "
          "here on\n",
          *said_loss, shortest(static_cast<double>(scale->buffer->read_one<float>())));
    if (!scalar::must_give_up(state, rule)) return;
    const bool named = culprit >= 0 && culprit < static_cast<std::int32_t>(names.size());
    throw DivergedError(
        "E0810", fmt::format("{} steps in a row produced non-finite gradients", state.overflow_run))
        .saw("first non-finite tensor: the gradient of " +
             (named ? names[static_cast<std::size_t>(culprit)] : std::string("the loss")))
        .line("scale", fmt::format("{:g}", scale->buffer->read_one<float>()))
        .advice(
            "a lower learning rate or a longer warm-up; where a low precision is used, O0 to find "
            "the cause");
  }
};

// The number of the loss that the scaler is of, where its overflows are said.
std::optional<std::ptrdiff_t> said_loss(const Optimizer& optimizer, const VariablePtr& scale) {
  const amp::LossScales& scales = optimizer.loss_scales();
  if (!scales.says_overflows) return std::nullopt;
  const auto it = std::ranges::find_if(
      scales.each, [&](const amp::LossScales::One& one) { return one.state.scale == scale; });
  if (it == scales.each.end()) return std::nullopt;
  return it - scales.each.begin();
}

}  // namespace

void give_up_if_hopeless(const Optimizer& optimizer, std::int32_t culprit) {
  const scalar::ScalerState state{.overflow_run =
                                      optimizer.overflow_run->buffer->read_one<std::int32_t>()};
  if (!scalar::must_give_up(state, optimizer.scaler())) return;
  Limit{optimizer.overflow_run, optimizer.scale, optimizer.scaler(), culprit_names(optimizer)}
      .check(culprit);
}

void give_up_if_hopeless(const StepResult& step, const Optimizer& optimizer) {
  give_up_if_hopeless(step, optimizer, optimizer.scaler_variables());
}

void give_up_if_hopeless(const StepResult& step, const Optimizer& optimizer,
                         const ScalerVariables& scaler) {
  const Limit limit{scaler.overflow_run, scaler.scale, optimizer.scaler(), culprit_names(optimizer),
                    said_loss(optimizer, scaler.scale)};
  step.culprit.emitter()->watch(step.culprit,
                                [limit](std::int32_t culprit) { limit.check(culprit); });
}

}  // namespace aloft
