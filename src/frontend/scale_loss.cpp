#include "frontend/scale_loss.h"

#include <cmath>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "frontend/give_up.h"
#include "frontend/left_gradients.h"
#include "frontend/loop_taps.h"
#include "frontend/loss_scales.h"
#include "frontend/premises.h"
#include "frontend/sums_scale.h"
#include "frontend/update_phase.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/grad_stats.h"
#include "ops/step_tensors.h"

namespace aloft::amp {
namespace {

using Stage = ScopeRecord::Stage;

bool has_scale(const Optimizer& o) { return o.scaler().kind != scalar::ScalerKind::None; }

LossScales::One& scale_of(const Optimizer& optimizer, std::size_t loss_id) {
  std::vector<LossScales::One>& each = optimizer.loss_scales().each;
  if (loss_id >= each.size())
    throw UserError("E0814", "there is no loss of this number")
        .saw("loss_id " + std::to_string(loss_id))
        .need("0 to " + std::to_string(each.size() - 1))
        .advice("amp::Options::num_losses says how many there are");
  return each[loss_id];
}

UserError out_of_turn(const std::string& saw, const std::string& need) {
  return UserError("E0808", "amp::scale_loss() is not its turn").saw(saw).need(need);
}

// Those of its parameters for which there is a gradient.
std::vector<VariablePtr> owners_of(const Optimizer& optimizer) {
  std::vector<VariablePtr> owners;
  for (const VariablePtr& p : optimizer.given())
    if (grad_of(p).is_defined()) owners.push_back(p);
  return owners;
}

// A scale of one of the losses that the gradient is of, and divided by; null: there is none.
VariablePtr scale_behind(const VariablePtr& p, const Optimizer& optimizer,
                         const std::set<std::size_t>& losses) {
  for (const std::size_t id : losses)
    if (const VariablePtr& scale = optimizer.loss_scales().each[id].state.scale;
        eager().gradient_version(p, scale) == EagerEmitter::kDivided)
      return scale;
  return nullptr;
}

UserError not_scaled(const Variable& p) {
  return UserError("E0808", "the gradients are not those of a scaled loss")
      .saw("a gradient of '" + p.name.str() + "' by a backward() without the loss scale")
      .need("amp::scale_loss(loss, optimizer).backward(), as a step divides by the scale")
      .advice("optimizer.zero_grad() drops what other losses have left");
}

UserError not_divided(const Variable& p) {
  return UserError("E0808", "the gradients are multiplied with a loss scale still")
      .saw("a gradient of '" + p.name.str() + "' by a block that was not given its optimizer")
      .need("a block of all for which the loss leaves gradients, scale_loss(loss, {a, b})")
      .advice("optimizer.zero_grad() drops what other losses have left");
}

// The gradient is multiplied with the number that the scale is now, by which it will be divided.
void check_version(const VariablePtr& p, const VariablePtr& scale) {
  if (!eager().gradient_comes_by(p, scale)) throw not_scaled(*p);
  if (eager().gradient_version(p, scale) == scale->version) return;
  throw UserError("E0808", "the gradients are multiplied with a loss scale that has moved since")
      .saw("a gradient of '" + p->name.str() + "', and a scale that was written after its loss")
      .need("the block's end before the scale moves; scale_loss(loss, {a, b}) for two optimizers")
      .advice("call amp::load_state_dict() between a step and the next block");
}

// Blocks of the losses have divided the gradient, and nothing was added to it.
void check_divided(const VariablePtr& p, const Optimizer& optimizer,
                   const std::set<std::size_t>& losses) {
  if (scale_behind(p, optimizer, losses)) return;
  for (const LossScales::One& loss : optimizer.loss_scales().each)
    if (eager().gradient_comes_by(p, loss.state.scale)) throw not_divided(*p);
  throw not_scaled(*p);
}

// What blocks before this one have divided is kept apart from what this one leaves.
void set_aside(const Optimizer& optimizer) {
  ScopeRecord& r = optimizer.scope_record();
  const std::vector<VariablePtr> owners = owners_of(optimizer);
  for (const VariablePtr& p : owners)
    r.set_aside[p] = {grad_of(p), scale_behind(p, optimizer, r.losses)};
  eager().forget_gradients(owners);
}

Tensor both(const Tensor& a, const Tensor& b) { return a.is_defined() ? minimum(a, b) : b; }

}  // namespace

Optimizers::Optimizers(const Optimizer& one) : all_{one} {}
Optimizers::Optimizers(std::initializer_list<Optimizer> all) : all_(all) {}
Optimizers::Optimizers(std::vector<Optimizer> all) : all_(std::move(all)) {}
std::vector<Optimizer>::const_iterator Optimizers::begin() const { return all_.begin(); }
std::vector<Optimizer>::const_iterator Optimizers::end() const { return all_.end(); }

ScaledLoss scale_loss(const Tensor& loss, const Optimizers& optimizers,
                      const ScaleLossOptions& options) {
  return ScaledLoss(loss, optimizers, options);
}

ScaledLoss::ScaledLoss(const Tensor& loss, Optimizers optimizers, const ScaleLossOptions& options)
    : optimizers_(std::move(optimizers)),
      options_(options),
      loss_(loss),
      exceptions_(std::uncaught_exceptions()) {
  EmitterScope scope(emitter_of(loss));
  check_optimizers();
  for (const Optimizer& o : optimizers_) check_gradients(o);
  const Optimizer& first = *optimizers_.begin();
  LoopTaps::tell(LoopWord::ScaledLoss, loss);
  static_cast<Tensor&>(*this) = loss;
  if (has_scale(first)) {
    const Tensor scale = current_emitter().state(scale_of(first, options_.loss_id).state.scale);
    LoopTaps::tell(LoopWord::LossScale, scale);
    static_cast<Tensor&>(*this) = loss * scale;
  }
  // Nothing is refused from here on.
  is_open_ = true;
  for (const Optimizer& o : optimizers_) {
    o.scope_record().is_in_scope = true;
    if (has_scale(o) && o.scope_record().stage != Stage::Scaled) set_aside(o);
  }
}

void ScaledLoss::check_optimizers() const {
  if (premises_of_trace())
    throw UserError("E0305", "amp::scale_loss() in a function that is traced")
        .need("gradients of the function's own, which backward() cannot leave there")
        .advice("return minimize(loss, optimizer) from the function, or run eagerly");
  if (optimizers_.begin() == optimizers_.end())
    throw out_of_turn("no optimizer", "those for which the loss leaves gradients");
  const Optimizer& first = *optimizers_.begin();
  for (const Optimizer& o : optimizers_) {
    if (!has_scale(o) && !o.loss_scales().is_initialized)
      throw UserError("E0808", "amp::scale_loss() before amp::initialize")
          .saw("an optimizer that was made without it, and has no loss scale")
          .need("auto [net, optimizer] = amp::initialize(model, optim::Adam{}, options)")
          .advice(
              "without mixed precision loss.backward() will do, or options with .enabled = false, "
              "under which the block changes nothing");
    const VariablePtr& scale = scale_of(o, options_.loss_id).state.scale;
    const bool is_same = scale == scale_of(first, options_.loss_id).state.scale;
    if (has_scale(o) != has_scale(first) || (has_scale(o) && !is_same))
      throw out_of_turn("optimizers that have different loss scales",
                        "those of one amp::initialize, or a block for each");
    if (o.scope_record().is_in_scope)
      throw out_of_turn("a block of an optimizer within another of its blocks",
                        "one behind the other, or the sum of the losses in one");
    if (has_scale(o) && o.accumulation() > 1)
      throw out_of_turn("an optimizer that sums " + std::to_string(o.accumulation()) +
                            " micro-batches in accumulate()",
                        "a block for each micro-batch instead, whose gradients are summed too");
  }
}

void ScaledLoss::check_gradients(const Optimizer& o) const {
  if (!has_scale(o)) return;
  ScopeRecord& r = o.scope_record();
  const std::vector<VariablePtr> owners = owners_of(o);
  if (owners.empty()) r = {};  // a step, or zero_grad(), has dropped them
  if (r.stage == Stage::Scaled) {
    const Variable& scale = *scale_of(o, r.loss_id).state.scale;
    if (r.loss_id != options_.loss_id || r.version != scale.version)
      throw out_of_turn("gradients that are multiplied with another loss scale, of delay_unscale",
                        "a block of the same loss, before another one moves its scale");
    return;
  }
  for (const VariablePtr& p : owners) check_divided(p, o, r.losses);
}

ScaledLoss::~ScaledLoss() noexcept(false) {
  if (!is_open_) return;
  if (std::uncaught_exceptions() > exceptions_)
    drop();
  else
    end();
}

void ScaledLoss::drop() noexcept {
  is_open_ = false;
  for (const Optimizer& o : optimizers_) {
    eager().forget_gradients(o.given());
    o.scope_record() = {};
  }
}

void ScaledLoss::end() {
  if (!is_open_) return;
  try {
    divide();
  } catch (...) {
    drop();
    throw;
  }
  is_open_ = false;
  for (const Optimizer& o : optimizers_) {
    ScopeRecord& r = o.scope_record();
    r.is_in_scope = false;
    r.loss = loss_;
  }
}

void ScaledLoss::divide() {
  const Optimizer& first = *optimizers_.begin();
  if (!has_scale(first)) return;
  LossScales::One& of_loss = scale_of(first, options_.loss_id);
  std::vector<VariablePtr> owners;  // in the order of optimizers and parameters
  std::set<VariablePtr> known;
  for (const Optimizer& o : optimizers_)
    for (const VariablePtr& p : owners_of(o)) {
      need_scaled({p}, of_loss.state.scale);
      check_version(p, of_loss.state.scale);
      if (known.insert(p).second) owners.push_back(p);
    }
  if (owners.empty())
    throw UserError("E0808", "a block of amp::scale_loss() has left no gradients")
        .need("backward() on the scaled loss, which depends on parameters of the optimizers");
  if (options_.delay_unscale) {
    for (const Optimizer& o : optimizers_) {
      ScopeRecord& r = o.scope_record();
      r.stage = Stage::Scaled;
      r.loss_id = options_.loss_id;
      r.version = of_loss.state.scale->version;
    }
    return;
  }
  const UpdatePhase phase;
  const Tensor scale = current_emitter().state(of_loss.state.scale);
  std::vector<Tensor> gradients;
  gradients.reserve(owners.size());
  for (const VariablePtr& p : owners) gradients.push_back(grad_of(p));
  const Tensor finite = grad_stats(scale, gradients).finite;
  for (const VariablePtr& p : owners) {
    set_grad(p, cast(grad_of(p), DType::F32) * (1.0 / scale));
    eager().note_divided(p);
  }
  for (const Optimizer& o : optimizers_) {
    ScopeRecord& r = o.scope_record();
    const auto all_aside = std::exchange(r.set_aside, {});
    for (const VariablePtr& p : o.given()) {
      const auto it = all_aside.find(p);
      if (it == all_aside.end()) continue;
      const auto& [gradient, by] = it->second;
      if (known.contains(p))
        set_grad(p, gradient + grad_of(p));
      else
        eager().put_back_gradient(p, gradient, by);
    }
    r.stage = Stage::Unscaled;
    r.losses.insert(options_.loss_id);
    r.finite = both(r.finite, finite);
    r.scale = scale;
  }
  of_loss.untold = both(of_loss.untold, finite);
  if (!options_.delay_overflow_check)
    next_scale(std::exchange(of_loss.untold, {}), of_loss.state, first.scaler());
}

StepResult step(Optimizer& optimizer) {
  const Tensor& loss = optimizer.scope_record().loss;
  return step(loss.is_defined() ? loss : full({}, NAN, DType::F32), optimizer);
}

StepResult step(const Tensor& loss, Optimizer& optimizer) {
  ScopeRecord& r = optimizer.scope_record();
  if (r.is_in_scope)
    throw out_of_turn("a step within a block of the optimizer", "a step behind it");
  if (!has_scale(optimizer) || owners_of(optimizer).empty()) r.stage = Stage::Ready;
  if (r.stage == Stage::Scaled)
    throw out_of_turn("a step with gradients that are multiplied with the loss scale still",
                      "a block without delay_unscale before the step");
  if (r.stage == Stage::Ready) {
    const VariablePtr* scale = has_scale(optimizer) ? &optimizer.scale : nullptr;
    std::vector<Tensor> gradients = left_gradients(optimizer, scale);
    if (scale)
      for (const VariablePtr& p : owners_of(optimizer)) check_version(p, *scale);
    else
      need_no_scale(optimizer.given());
    StepResult result = apply_gradients(loss, std::move(gradients), optimizer);
    r = {};
    return result;
  }
  for (const VariablePtr& p : owners_of(optimizer)) check_divided(p, optimizer, r.losses);
  if (optimizer.accumulation() > 1) sums_scale(optimizer).check(nullptr);
  StepResult result = update_parameters(loss, left_gradients(optimizer, nullptr), optimizer,
                                        {.scale = full({}, 1.0, DType::F32), .finite = r.finite});
  result.loss_scale = r.scale;
  advance_random();
  const ScopeRecord done = std::exchange(r, {});
  for (const std::size_t id : done.losses)
    give_up_if_hopeless(result, optimizer, scale_of(optimizer, id).state);
  return result;
}

}  // namespace aloft::amp
