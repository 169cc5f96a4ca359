// What a training step does with gradients. An OptimizerSpec names a formula (optim/ has them); an
// Optimizer holds the state that the formula needs, and the loss scaler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/tensor.h"
#include "optim/spec.h"
#include "scalar/loss_scaler.h"
#include "types/variable.h"

namespace aloft {

namespace amp {
struct LossScales;   // Inside: frontend/loss_scales.h
struct ScopeRecord;  // the same
}  // namespace amp

// The state of a loss scaler (ScalerState of scalar/loss_scaler.h): the scale f32[], and i32[],
// i32[], i64[].
struct ScalerVariables {
  VariablePtr scale, good_steps, overflow_run, skipped;  // each one number
};
// As it begins. `loss`: which of several losses it is of; their names differ by it.
ScalerVariables new_scaler_variables(const scalar::ScalerRule& rule, std::size_t loss = 0);

// The state of an update rule over a model's parameters, and its loss scaler: what minimize() steps
// with. Copies are one optimizer, as copies of a tensor are one tensor: they share everything
// below.
class Optimizer {
 public:
  // Creates moments for every parameter that requires a gradient. A parameter with a master is
  // updated by way of it.
  // UserErrors of frontend/check_optimizer.h: E0801 (nothing to train), E0809 (a pattern matches no
  // parameter), E0814 (a number out of range), E0816 (an early update cannot clip or skip), E0819
  // (no update rule), E0325 (a parameter is null, has no memory or is given twice), E0311 (one is
  // not f32, bf16 or f16).
  Optimizer(OptimizerSpec spec, const std::vector<VariablePtr>& parameters,
            scalar::ScalerRule scaler);
  // No move of its own: what was moved from is the same optimizer still.
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;

  // What it was made with.
  const OptimizerSpec& spec() const { return content_->spec; }
  const scalar::ScalerRule& scaler() const { return content_->scaler; }

  // All that it was made for, frozen ones too.
  const std::vector<VariablePtr>& given() const { return content_->given; }
  // Those that it has moments for: all that required a gradient when it was made or in a step.
  const std::vector<VariablePtr>& parameters() const { return content_->parameters; }
  // The fp32 master of parameter i, or its remainders (u8) where the masters are split, or null.
  // UserError E0814, as in the calls below, where parameters() has no i.
  const VariablePtr& master(std::size_t i) const;
  // moment(k, i): state k of parameter i, in the order of kept().
  const VariablePtr& moment(std::size_t k, std::size_t i) const;
  // Names of what is kept of each parameter: the rule's states(), and "average" where
  // OptimizerSpec::average asks for one.
  std::vector<std::string_view> kept() const;
  // The mean of parameter i's values, f32 (frontend/averaged_weights.h uses them); null where none
  // is kept.
  VariablePtr average(std::size_t i) const;
  // This optimizer over the parameters that require a gradient now, for one step: those frozen
  // since are left out and keep their moments, those unfrozen since get moments, and a master from
  // their stored values where the precision has one. From then on they count their own updates.
  // Valid until the next call. UserError E0801 where everything is frozen.
  const Optimizer& trained();

  // Parameters more, as of a module that has grown, behind those that it was made for. They are
  // stored as the precision of amp::initialize stores such, with masters where it has them; moments
  // and the count of updates begin anew for them, so that a rule which corrects its first steps
  // does so. Groups take them as they take others; `groups` are more of these, behind those that
  // there are, for the parameters that are added alone. Between steps: compiled functions with a
  // step of this optimizer are compiled once more. Whatever is refused leaves everything as it was:
  // what the constructor refuses; UserError E0809 where a new group takes a parameter that was
  // there, E0305 in a function that is being traced.
  void add(const std::vector<VariablePtr>& parameters,
           const std::vector<ParameterGroup>& groups = {});

  // Inside: what stores a parameter that is added later as the precision does.
  void set_late_storage(std::function<void(Variable&)> store) {
    content_->late_storage = std::move(store);
  }
  // Inside: what makes the master of a parameter that is unfrozen later; null for none.
  void set_late_master(std::function<VariablePtr(const Variable&)> make) {
    content_->late_master = std::move(make);
  }

  // Everything but the parameters: masters, moments, counters, scaler, in a fixed order; with
  // set_accumulation() the sums and the number of micro-batches in them too.
  std::vector<VariablePtr> state() const;

  // With ScheduleKind::Plateau: tells of a loss, such as that of a validation; where it has not
  // fallen for long the rate of the next steps does. UserError E0831 with any other schedule.
  void report_loss(double loss);
  // f64[4]: what it knows of losses (scalar/plateau.h), the factor on the rate first; null with any
  // other schedule.
  VariablePtr plateau() const { return content_->plateau; }

  VariablePtr applied;  // i64[]: updates applied; skipped steps do not count
  // The loss scaler's: the scale f32[], and i32[], i32[], i64[], see ScalerState
  // (scalar/loss_scaler.h).
  VariablePtr scale, good_steps, overflow_run, skipped;
  // The four.
  ScalerVariables scaler_variables() const { return {scale, good_steps, overflow_run, skipped}; }
  // Inside: the scalers of all losses that amp::initialize was told of, the first of which is the
  // one above, and what scopes of amp::scale_loss have done to gradients since the last step.
  amp::LossScales& loss_scales() const { return *content_->loss_scales; }
  amp::ScopeRecord& scope_record() const { return *content_->scope_record; }
  // Inside: has these scalers from here on, with other optimizers; before the first step.
  void share(const std::shared_ptr<amp::LossScales>& loss_scales);

  // i64[]: the updates that parameter i has had, which its rule goes by: `applied`, or where it was
  // frozen during some of those a count of its own, which it shares with those that come and go
  // with it.
  const VariablePtr& applied_to(std::size_t i) const;

  // The group of parameter i, or null for those that no group takes.
  const ParameterGroup* group(std::size_t i) const;
  // Whether the weight decay holds for parameter i.
  bool decays(std::size_t i) const;
  // Whether parameter i is one that OptimizerSpec::rest names.
  bool is_rest(std::size_t i) const;

  // Micro-batches whose gradients are summed before an update; the sums live in `accumulators`.
  // Calls of accumulate() and minimize() are counted, and refused with E0802 where it is not their
  // turn; set_accumulation() begins anew, with sums of zeros, at once: not in a compiled function
  // (E0802).
  void set_accumulation(int micro_batches);
  int accumulation() const;
  const std::vector<VariablePtr>& accumulators() const;  // none with one micro-batch a step
  // Drops the gradients that backward() left for these parameters, and those that accumulate()
  // summed: where micro-batches are not to be stepped with, behind an exception for example. Every
  // step does so itself. In both modes, as minimize(): a compiled function does so in each call.
  // UserError E0808 within a block of amp::scale_loss() behind another block's gradients.
  void zero_grad();
  static constexpr const char* kMicroBatches = "optim.micro_batches";
  // i32[]: micro-batches in the sums, which hold zeros where it is 0. Null without sums.
  VariablePtr micro_batches() const { return sums_micro_batches() ? modes().done : nullptr; }
  // As zero_grad() for the sums, from outside of programs: at once.
  void drop_micro_batches();

  // Inside: for minimize.cpp. The gradients of a micro-batch are added to the sums, or taken with
  // them, or all are dropped.
  void count_micro_batch();
  void count_last_micro_batch();
  void count_none();

  // Inside: for checkpoints of runs that unfroze parameters on their way. What they call moment k
  // of a parameter, and the count of updates that it has for itself.
  static constexpr std::string_view kOwnCount = "optim.applied.";
  static std::string count_name(const Variable& parameter);
  std::string moment_name(std::size_t k, const Variable& parameter) const;
  // A draft of this optimizer: as it would be with moments for `late` too, given parameters that it
  // has none for.
  Optimizer with(const std::vector<VariablePtr>& late) const;
  // Makes of this optimizer what the draft is, with masters for what is late.
  void become(const Optimizer& draft);
  // Sets applied_to() of every parameter, once `applied` is set: where there is a number to it, for
  // itself.
  void set_counts(const std::vector<std::optional<std::int64_t>>& own);

 private:
  // What programs were traced under, and know beyond the optimizer's life.
  struct Modes {
    std::int64_t per_step = 1;
    VariablePtr done;  // i32[]: micro-batches since the last step; null until a step has several
    std::int64_t regroupings = 0;  // of the parameters, by the count that they share
  };
  struct Content {
    OptimizerSpec spec;
    scalar::ScalerRule scaler;
    std::vector<VariablePtr> given;
    // Of each parameter: itself, its own count or null, its sum or null, its moments. A sum is made
    // once: programs that were traced under a number of micro-batches hold again when that number
    // is set again.
    std::vector<VariablePtr> parameters, counts, sums;
    std::vector<std::vector<VariablePtr>> moments;
    VariablePtr plateau;
    std::function<VariablePtr(const Variable&)> late_master;
    std::function<void(Variable&)> late_storage;
    std::shared_ptr<const Optimizer> trained;  // where something is frozen
    std::shared_ptr<Modes> modes = std::make_shared<Modes>();
    std::shared_ptr<amp::LossScales> loss_scales;
    std::shared_ptr<amp::ScopeRecord> scope_record;
  };

  Modes& modes() const { return *content_->modes; }
  bool sums_micro_batches() const { return modes().per_step > 1; }
  void take(std::size_t at, const VariablePtr& parameter);
  void leave_out(std::size_t at);
  void count_apart(const std::vector<std::size_t>& frozen);
  void give_master(Variable& parameter) const;
  // State k of a parameter, and its average, which is kept behind the states.
  VariablePtr new_state(std::size_t k, const Variable& parameter, bool is_rest) const;
  VariablePtr new_average(std::size_t k, const Variable& parameter) const;
  bool is_named_for(const Variable& count, const std::vector<std::size_t>& members) const;
  void share_count(const std::vector<std::size_t>& members, const VariablePtr& from);
  bool has_step_in_trace() const;
  void check_added(const OptimizerSpec& grown, const std::vector<VariablePtr>& all) const;

  std::shared_ptr<Content> content_;
};

// What a training step tells. Read after the step has run.
struct StepResult {
  Tensor loss_tensor;    // f32[]: the loss that the step was given
  Tensor grad_norm;      // f32[]: before clipping
  Tensor learning_rate;  // f32[]: of this step
  Tensor loss_scale;     // f32[]: of this step
  Tensor finite;         // i32[]: 0 where the step was skipped
  Tensor culprit;  // i32[]: the first gradient of the backward pass that was not finite, as an
                   // index into culprit_names(), or -1
  // The loss as a number. UserError E0301 while tracing.
  double loss() const { return loss_tensor.item(); }
  // Whether a gradient was not finite, and the step skipped. UserError E0301 while tracing.
  bool skipped() const { return finite.item() == 0; }
};

// One whole update in one call: scale, gradients, finite check, global norm, clipping, update,
// loss scaler, counters. An overflowed step changes no parameter, moment or counter, without the
// host taking part in the decision. In eager mode it has run when it returns. A parameter that the
// loss does not depend on has a gradient of zeros (and still decays), a frozen one has none and
// stays what it is. UserError E0322 where the loss depends on none of the optimizer's, E0321 where
// it cannot be differentiated any more, E0808 where a loss scale is in it already, E0802 where
// set_accumulation() asks for more micro-batches before it; DivergedError E0810 behind the last of
// ScalerRule::give_up_after overflows in a row, from here or, compiled, from the program's call.
//
// Gradients that backward() left for the optimizer's parameters are gone then: of other losses,
// they are no part of the step.
//
// It is the last use of what the loss was computed from by way of the optimizer's parameters. What
// another loss that is held was computed from stays: minimize(a, one), minimize(b, two) with both
// losses computed before takes both gradients at the old parameters.
StepResult minimize(const Tensor& loss, Optimizer& optimizer);

// The parts of minimize(), for loops that look between them (frontend/value_and_grad.h,
// frontend/scale_loss.h):

// Gradients of loss x loss scale, one for each parameter that Optimizer::trained() has, in its
// order.
std::vector<Tensor> scaled_gradients(const Tensor& loss, Optimizer& optimizer);
// Finite check, global norm, clipping, update, count of applied updates. Drops what backward()
// left.
StepResult update_parameters(const Tensor& loss, std::vector<Tensor> scaled_gradients,
                             Optimizer& optimizer);
// The loss scaler's next state and the next step's random numbers. It never throws E0810: whoever
// looks between the parts asks give_up_if_hopeless() (frontend/give_up.h).
void update_scaler(const StepResult& step, Optimizer& optimizer);

// What a loop has done to gradients before it steps with them.
struct GradientState {
  Tensor scale = {};   // f32[]: what they are multiplied with still; undefined: the optimizer's
  Tensor finite = {};  // i32[]: 0 where one was not finite before; undefined: nobody has looked
};
// The parts for loops with a loss scale of their own (frontend/grad_scaler.h).
StepResult update_parameters(const Tensor& loss, std::vector<Tensor> gradients,
                             Optimizer& optimizer, const GradientState& given);
void update_scaler(const Tensor& finite, const ScalerVariables& state,
                   const scalar::ScalerRule& rule);
// The scaler's next state alone; `finite` i32[].
void next_scale(const Tensor& finite, const ScalerVariables& state, const scalar::ScalerRule& rule);
// The next step's random numbers alone.
void advance_random();
// update_parameters() and update_scaler(): one update from scaled_gradients().
StepResult apply_gradients(const Tensor& loss, std::vector<Tensor> scaled_gradients,
                           Optimizer& optimizer);

// With accumulation: adds this micro-batch's gradients to the accumulators. The last micro-batch
// goes through minimize(), which adds its own and starts over. UserError E0808 without
// set_accumulation(2 or more), E0802 where the last micro-batch is due.
Tensor accumulate(const Tensor& loss, Optimizer& optimizer);

// The trained parameters by name, as StepResult::culprit numbers them. The first gradient that was
// not finite is the one that the backward pass completes first: of the parameter used last, and of
// one that is used several times, by its first use.
std::vector<std::string> culprit_names(const Optimizer& optimizer);

}  // namespace aloft
