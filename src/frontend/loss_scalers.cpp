#include "frontend/loss_scalers.h"

#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "frontend/loop_taps.h"
#include "graph/scope.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/grad_stats.h"
#include "ops/step_tensors.h"
#include "runtime/buffer.h"

namespace aloft::amp {
namespace {

// There the step behind so many in a row fails.
constexpr std::int32_t kMostOverflows = 1000;

scalar::ScalerRule checked(const scalar::ScalerRule& rule, const std::string& saw) {
  std::string problem(problem_of(rule));
  if (problem.empty() && rule.init < 1) problem = "the scale must be 1 or more";
  if (!problem.empty())
    throw UserError("E0814", "a number of the loss scaler is out of range").saw(saw).need(problem);
  return rule;
}

scalar::ScalerRule fixed(double scale) {
  scalar::ScalerRule rule = scalar::fixed_scaler(static_cast<float>(scale));
  rule.give_up_after = std::numeric_limits<std::int32_t>::max();
  return checked(rule, "scale " + shortest(scale));
}

scalar::ScalerRule dynamic(double scale, double factor, std::int64_t window) {
  scalar::ScalerRule rule = scalar::dynamic_scaler();
  rule.init = static_cast<float>(scale);
  rule.growth = factor;
  rule.backoff = 1 / factor;
  rule.growth_interval = scalar::interval_of(window);
  rule.min = 1, rule.max = scalar::kNoCeiling;
  rule.give_up_after = kMostOverflows + 1;
  return checked(rule, "scale " + shortest(scale) + ", scale_factor " + shortest(factor) +
                           ", scale_window " + std::to_string(window));
}

// Scaling is no part of what a precision decides.
Where without_policy() {
  Where where = current_where();
  where.policy = {};
  return where;
}

}  // namespace

Tensor all_finite(const std::vector<Tensor>& tensors) {
  if (tensors.empty())
    throw UserError("E0302", "all_finite() has nothing to look at").need("at least one tensor");
  const Scope scope(without_policy());
  const NoGrad no_grad;
  EmitterScope emitter(emitter_of(tensors[0]));
  // `finite` also asks for a norm that f32 holds.
  return less(grad_stats(full({}, 1.0, DType::F32), tensors).culprit, 0);
}

LossScaler::LossScaler(const scalar::ScalerRule& rule)
    : rule_(rule), state_(new_scaler_variables(rule)) {}

// In f32, whatever x is: a scale of 65,536 is no f16.
Tensor LossScaler::scaled(const Tensor& x, bool inverse) const {
  EmitterScope emitter(emitter_of(x));
  const Scope scope(without_policy());
  const Tensor scale = current_emitter().state(state_.scale);
  if (!inverse) LoopTaps::tell(LoopWord::LossScale, scale);
  return cast(cast(x, DType::F32) * (inverse ? 1.0 / scale : scale), x.dtype());
}

Tensor LossScaler::scale(const Tensor& x) const { return scaled(x, false); }
Tensor LossScaler::unscale(const Tensor& x) const { return scaled(x, true); }

std::vector<Tensor> LossScaler::scale(const std::vector<Tensor>& all) const {
  std::vector<Tensor> out;
  for (const Tensor& x : all) out.push_back(scale(x));
  return out;
}
std::vector<Tensor> LossScaler::unscale(const std::vector<Tensor>& all) const {
  std::vector<Tensor> out;
  for (const Tensor& x : all) out.push_back(unscale(x));
  return out;
}

bool LossScaler::adjust(const Tensor& grads_finite) {
  EmitterScope emitter(emitter_of(grads_finite));
  const Scope scope(without_policy());
  next_scale(cast(grads_finite, DType::I32), state_, rule_);
  return rule_.kind == scalar::ScalerKind::Dynamic;
}

double LossScaler::scale_value() const { return state_.scale->buffer->read_one<float>(); }

StaticLossScaler::StaticLossScaler(double scale_value) : LossScaler(fixed(scale_value)) {}
DynamicLossScaler::DynamicLossScaler(double scale_value, double scale_factor,
                                     std::int64_t scale_window)
    : LossScaler(dynamic(scale_value, scale_factor, scale_window)) {}

FixedLossScaleManager::FixedLossScaleManager(double loss_scale, bool drop_overflow_update)
    : rule_(fixed(loss_scale)) {
  if (!drop_overflow_update)
    throw UserError("E0814", "a step with a gradient that is not finite is never applied")
        .saw("drop_overflow_update = false")
        .need("drop_overflow_update = true");
}

DynamicLossScaleManager::DynamicLossScaleManager(double init_loss_scale, double scale_factor,
                                                 std::int64_t scale_window)
    : rule_(dynamic(init_loss_scale, scale_factor, scale_window)),
      state_(scalar::initial_state(rule_)) {}

void DynamicLossScaleManager::update_loss_scale(bool overflow) {
  state_ = next(state_, !overflow, rule_);
  if (must_give_up(state_, rule_))
    throw DivergedError("E0810", "too many steps in a row overflowed")
        .saw(std::to_string(state_.overflow_run))
        .need("at most " + std::to_string(kMostOverflows));
}

}  // namespace aloft::amp
