#include "frontend/grad_scaler.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "frontend/give_up.h"
#include "frontend/left_gradients.h"
#include "frontend/loop_taps.h"
#include "frontend/premises.h"
#include "frontend/sums_scale.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/grad_stats.h"
#include "ops/step_tensors.h"

namespace aloft::amp {
namespace {

// torch's rule has no ceiling but the largest float, no floor, and never gives up.
scalar::ScalerRule rule_of(const GradScalerOptions& o) {
  scalar::ScalerRule rule;
  rule.kind = o.enabled ? scalar::ScalerKind::Dynamic : scalar::ScalerKind::None;
  rule.init = static_cast<float>(o.init_scale);
  rule.growth = o.growth_factor;
  rule.backoff = o.backoff_factor;
  rule.growth_interval = scalar::interval_of(o.growth_interval);
  rule.max = scalar::kNoCeiling, rule.min = scalar::kNoFloor;
  rule.give_up_after = std::numeric_limits<std::int32_t>::max();
  return rule;
}

void check(const scalar::ScalerRule& rule) {
  if (const std::string_view problem = problem_of(rule); !problem.empty())
    throw UserError("E0814", "a number of the loss scaler is out of range")
        .saw("init_scale " + shortest(rule.init) + ", growth_factor " + shortest(rule.growth) +
             ", backoff_factor " + shortest(rule.backoff) + ", growth_interval " +
             std::to_string(rule.growth_interval))
        .need(std::string(problem));
}

// A number that was read while tracing would be the program's for good.
void need_no_trace(const char* what) {
  if (premises_of_trace())
    throw UserError("E0305", "the state of a scaler is read in a function that is traced")
        .saw(std::string(what) + " in a compiled function")
        .need("scaler.scale(loss), which is an instruction of the program");
}

UserError out_of_turn(const char* saw, const char* need) {
  return UserError("E0808", "a call of the scaler is not its turn").saw(saw).need(need);
}

}  // namespace

std::string GradScalerState::str() const {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  if (!is_enabled) return out.dump();
  out["scale"] = scale;
  out["growth_factor"] = growth_factor;
  out["backoff_factor"] = backoff_factor;
  out["growth_interval"] = growth_interval;
  out["_growth_tracker"] = growth_tracker;
  return out.dump();
}

GradScalerState GradScalerState::parse(std::string_view text) {
  GradScalerState s;
  try {
    const nlohmann::json in = parse_json(text);
    s.is_enabled = !(in.is_object() && in.empty());
    if (!s.is_enabled) return s;
    for (const auto& [key, to] : {std::pair{"scale", &s.scale},
                                  {"growth_factor", &s.growth_factor},
                                  {"backoff_factor", &s.backoff_factor}})
      *to = in.at(key).get<double>();
    for (const auto& [key, to] : {std::pair{"growth_interval", &s.growth_interval},
                                  {"_growth_tracker", &s.growth_tracker}}) {
      if (!in.at(key).is_number_integer())
        throw DataError("E0832", "the text is no state of a GradScaler")
            .saw(std::string(key) + ": " + in.at(key).dump())
            .need("a whole number");
      *to = in.at(key).get<std::int64_t>();
    }
  } catch (const nlohmann::json::exception& e) {
    throw DataError("E0832", "the text is no state of a GradScaler")
        .saw(e.what())
        .need(
            "what json.dumps makes of the state_dict() of a scaler that is enabled: scale, "
            "growth_factor, "
            "backoff_factor, growth_interval, _growth_tracker");
  }
  return s;
}

GradScaler::GradScaler(const GradScalerOptions& options) : rule_(rule_of(options)) {
  check(rule_);
  state_ = new_scaler_variables(rule_);
}

GradScaler::GradScaler(const Optimizer& optimizer)
    : rule_(optimizer.scaler()), state_(optimizer.scaler_variables()), optimizer_(optimizer) {}

Tensor GradScaler::scale(const Tensor& loss) {
  EmitterScope scope(emitter_of(loss));
  if (!premises_of_trace()) loss_ = loss;
  LoopTaps::tell(LoopWord::ScaledLoss, loss);
  if (!is_enabled()) return loss;
  const Tensor scale = current_emitter().state(state_.scale);
  LoopTaps::tell(LoopWord::LossScale, scale);
  return loss * scale;
}

std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& losses) {
  std::vector<Tensor> scaled;
  for (const Tensor& loss : losses) scaled.push_back(scale(loss));
  return scaled;
}

void GradScaler::need_scale_of(const Optimizer& optimizer) const {
  const bool has_own = optimizer.scaler().kind != scalar::ScalerKind::None;
  if (has_own && optimizer.scale != state_.scale)
    throw out_of_turn("an optimizer with a loss scale of its own, by its precision",
                      "GradScaler(optimizer), which is over that scale, or a precision with "
                      "loss_scale=none");
}

GradScaler::Record& GradScaler::record(const Optimizer& optimizer) {
  need_scale_of(optimizer);
  if (is_enabled() && optimizer.spec().update == UpdateTime::Early)
    throw UserError("E0816", "an early update can neither clip nor skip a step")
        .saw("a GradScaler that is enabled")
        .need("update late, or a scaler that is not enabled");
  return records_[optimizer.applied];
}

Tensor GradScaler::scale_now() const {
  return is_enabled() ? current_emitter().state(state_.scale) : full({}, 1.0, DType::F32);
}

Tensor GradScaler::scale_of_gradients(const Optimizer& optimizer) const {
  need_scale_of(optimizer);
  const auto at = records_.find(optimizer.applied);
  const bool is_divided = at != records_.end() && at->second.stage == Stage::Unscaled;
  if (is_divided) return full({}, 1.0, DType::F32);
  if (is_enabled()) need_scaled(optimizer.given(), state_.scale, steady_since());
  return scale_now();
}

void GradScaler::unscale_(Optimizer& optimizer) {
  Record& r = record(optimizer);
  if (!is_enabled()) return;
  if (optimizer.accumulation() > 1)
    throw UserError("E0808", "unscale_() would leave the sums of micro-batches as they are")
        .saw("an optimizer that sums " + std::to_string(optimizer.accumulation()) +
             " micro-batches")
        .need("one backward() for each micro-batch instead, whose gradients are summed too");
  if (r.stage == Stage::Unscaled)
    throw out_of_turn("unscale_() a second time since the last update()", "one for each step");
  if (r.stage == Stage::Stepped)
    throw out_of_turn("unscale_() behind the optimizer's step()", "update() between them");
  const std::vector<Tensor> gradients = left_gradients(optimizer, &state_.scale, steady_since());
  const NoGrad no_grad;
  const Tensor scale = scale_now();
  r.finite = grad_stats(scale, gradients).finite;
  for (const VariablePtr& p : optimizer.given())  // frozen ones may be trained again by the step
    if (const Tensor g = grad_of(p); g.is_defined()) {
      set_grad(p, cast(g, DType::F32) * (1.0 / scale));
      eager().note_divided(p);
    }
  r.stage = Stage::Unscaled;
}

StepResult GradScaler::step(Optimizer& optimizer) {
  return step(optimizer, loss_.is_defined() ? loss_ : full({}, NAN, DType::F32));
}

StepResult GradScaler::step(const Tensor& loss) {
  if (!optimizer_)
    throw out_of_turn("step(loss) of a scaler that was made for no optimizer",
                      "step(optimizer), or GradScaler(optimizer)");
  return step(*optimizer_, loss);
}

StepResult GradScaler::step(Optimizer& optimizer, const Tensor& loss) {
  Record& r = record(optimizer);
  if (is_enabled() && r.stage == Stage::Stepped)
    throw out_of_turn("step() a second time since the last update()", "update() between them");
  const bool is_scaled = is_enabled() && r.stage == Stage::Ready;
  if (r.stage == Stage::Unscaled) need_divided(optimizer.trained().parameters(), state_.scale);
  if (!is_enabled()) need_no_scale(optimizer.given());
  const std::vector<Tensor> gradients =
      left_gradients(optimizer, is_scaled ? &state_.scale : nullptr, steady_since());
  if (optimizer.accumulation() > 1)
    sums_scale(optimizer).check(is_scaled ? state_.scale : nullptr, steady_since());
  GradientState given;
  given.scale = is_scaled ? scale_now() : full({}, 1.0, DType::F32);
  given.finite = r.finite;
  StepResult result = update_parameters(loss, gradients, optimizer, given);
  if (is_enabled()) result.loss_scale = scale_now();  // also where unscale_() has divided
  r = {Stage::Stepped, result.finite};
  if (optimizer_ && optimizer.applied == optimizer_->applied) last_ = result;
  return result;
}

std::uint64_t GradScaler::steady_since() const {
  return steady_until_ == state_.scale->version ? steady_since_ : state_.scale->version;
}

void GradScaler::note_written(double before, std::uint64_t since) {
  steady_until_ = state_.scale->version;
  steady_since_ = get_scale() == before ? since : steady_until_;
}

void GradScaler::update(std::optional<double> new_scale) {
  const bool looks = is_enabled() && !premises_of_trace();
  const double before = looks ? get_scale() : 0;
  const std::uint64_t since = steady_since();
  Tensor finite;
  for (const auto& [optimizer, r] : records_)
    if (r.finite.is_defined()) finite = finite.is_defined() ? minimum(finite, r.finite) : r.finite;
  if (!finite.is_defined() && (is_enabled() || optimizer_) && !new_scale)
    throw out_of_turn("update() without a step() or unscale_() before it",
                      "a step before every update");
  if (new_scale) {
    const auto scale = static_cast<float>(*new_scale);
    if (!(scale > 0) || !std::isfinite(scale))
      throw UserError("E0814", "the loss scale is out of range")
          .saw(shortest(*new_scale))
          .need("a number above 0");
    if (is_enabled()) current_emitter().update(state_.scale, full({}, scale, DType::F32));
    advance_random();
  } else if (finite.is_defined()) {
    update_scaler(finite, state_, rule_);
  }
  if (looks) note_written(before, since);
  records_.clear();
  loss_ = {};  // and what it holds
  if (const StepResult last = std::exchange(last_, {}); optimizer_ && last.finite.is_defined())
    give_up_if_hopeless(last, *optimizer_);
}

double GradScaler::get_scale() const {
  need_no_trace("get_scale()");
  return is_enabled() ? state_.scale->buffer->read_one<float>() : 1.0;
}

void GradScaler::set_rule(const scalar::ScalerRule& rule) {
  check(rule);
  rule_ = rule;
}
void GradScaler::set_growth_factor(double factor) {
  scalar::ScalerRule rule = rule_;
  rule.growth = factor;
  set_rule(rule);
}
void GradScaler::set_backoff_factor(double factor) {
  scalar::ScalerRule rule = rule_;
  rule.backoff = factor;
  set_rule(rule);
}
void GradScaler::set_growth_interval(std::int64_t steps) {
  scalar::ScalerRule rule = rule_;
  rule.growth_interval = scalar::interval_of(steps);
  set_rule(rule);
}

GradScalerState GradScaler::state_dict() const {
  need_no_trace("state_dict()");
  if (!is_enabled()) return {.is_enabled = false};
  return {.scale = get_scale(),
          .growth_factor = rule_.growth,
          .backoff_factor = rule_.backoff,
          .growth_interval = rule_.growth_interval,
          .growth_tracker = state_.good_steps->buffer->read_one<std::int32_t>()};
}

void GradScaler::load_state_dict(const GradScalerState& s) {
  need_no_trace("load_state_dict()");
  if (!is_enabled()) return;
  if (!s.is_enabled)
    throw DataError("E0832", "the state is that of a scaler that was not enabled")
        .need("the state of one that was, or a scaler with enabled = false");
  scalar::ScalerRule rule = rule_;
  rule.init = static_cast<float>(s.scale);
  rule.growth = s.growth_factor;
  rule.backoff = s.backoff_factor;
  rule.growth_interval = scalar::interval_of(s.growth_interval);
  if (s.growth_tracker < 0 || s.growth_tracker > std::numeric_limits<std::int32_t>::max())
    throw UserError("E0814", "a number of the loss scaler is out of range")
        .saw("_growth_tracker " + std::to_string(s.growth_tracker))
        .need("0 or more");
  set_rule(rule);
  const double before = get_scale();
  const std::uint64_t since = steady_since();
  for (const VariablePtr& v : {state_.scale, state_.good_steps}) eager().let_go_of(*v);
  state_.scale->buffer->write_one(rule.init);
  state_.good_steps->buffer->write_one(static_cast<std::int32_t>(s.growth_tracker));
  note_written(before, since);
}

}  // namespace aloft::amp
