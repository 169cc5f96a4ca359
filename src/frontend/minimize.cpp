// The end of a training step, written once for both modes: every line is an op call, recorded while
// tracing and executed at once in eager mode.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "frontend/averaged_weights.h"
#include "frontend/give_up.h"
#include "frontend/hooks.h"
#include "frontend/host_count.h"
#include "frontend/loop_taps.h"
#include "frontend/loss_scale_uses.h"
#include "frontend/loss_scales.h"
#include "frontend/optimizer.h"
#include "frontend/random.h"
#include "frontend/sums_scale.h"
#include "frontend/update_phase.h"
#include "frontend/variable_values.h"
#include "graph/graph.h"
#include "graph/refuse.h"
#include "ops/average_weight.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/grad_stats.h"
#include "ops/identity.h"
#include "ops/learning_rate.h"
#include "ops/lerp.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scaler_update.h"
#include "ops/slice.h"
#include "ops/step_tensors.h"
#include "ops/unary.h"
#include "ops/update.h"

namespace aloft {
namespace {

// Statistics of gradients take them from the last parameter to the first: number `i` of these is
// the gradient of this parameter.
std::size_t parameter_of(std::size_t i, const Optimizer& opt) {
  return opt.parameters().size() - 1 - i;
}

// The numbers of those gradients in the order in which the backward pass completes them, which is
// the reverse of their parameters' first uses. Empty where they stand in that order anyway.
Ints backward_order(const std::vector<Tensor>& gradients, const Optimizer& opt) {
  std::vector<std::int64_t> first_use;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    first_use.push_back(current_emitter().first_use(gradients[parameter_of(i, opt)]));
  Ints order(gradients.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return first_use[static_cast<std::size_t>(a)] > first_use[static_cast<std::size_t>(b)];
  });
  return std::is_sorted(order.begin(), order.end()) ? Ints{} : order;
}

// Sums over micro-batches, in fp32.
std::vector<Tensor> add_accumulated(const std::vector<Tensor>& gradients, const Optimizer& opt) {
  Emitter& e = current_emitter();
  std::vector<Tensor> sums;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    sums.push_back(add(e.state(opt.accumulators()[i]), cast(gradients[i], DType::F32)));
  return sums;
}

void empty_accumulators(const Optimizer& opt) {
  for (const VariablePtr& sum : opt.accumulators())
    current_emitter().update(sum, full(sum->type.shape, 0.0, DType::F32));
}

// How many updates parameters have had: the optimizer's own count, first, and those that some
// parameters have for themselves.
using Counts = std::vector<std::pair<VariablePtr, Tensor>>;

Counts counts_of(const Optimizer& opt, const Tensor& applied) {
  Counts counts = {{opt.applied, applied}};
  for (std::size_t i = 0; i < opt.parameters().size(); ++i) {
    const auto is_its = [&](const auto& c) { return c.first == opt.applied_to(i); };
    if (std::none_of(counts.begin(), counts.end(), is_its))
      counts.emplace_back(opt.applied_to(i), current_emitter().state(opt.applied_to(i)));
  }
  return counts;
}

void count_update(const Counts& counts, const Tensor& finite) {
  for (const auto& [count, updates] : counts)
    current_emitter().update(count, count_applied(updates, finite));
}

// How a parameter's master is kept; nothing where it is its own. An optimizer of
// several models may meet all of them.
std::optional<StateFormat> master_format(const Optimizer& opt, std::size_t i) {
  const VariablePtr& master = opt.master(i);
  if (!master) return std::nullopt;
  return master->layout == Layout::SplitRests ? StateFormat::Split : StateFormat::F32;
}

// A number of the group, or where it has none the optimizer's.
double number_of(std::optional<double> ParameterGroup::*member, double usual,
                 const ParameterGroup* group) {
  return group ? (group->*member).value_or(usual) : usual;
}

// The gradient with each row's norm, of the unscaled one, at most so large a share of the row of
// weights (Brock et al. 2021, equation 3, with their least norm of weights); a vector is a row.
Tensor clipped_by_rows(const Tensor& gradient, const Tensor& parameter, const GradStats& stats,
                       double share) {
  constexpr double kLeastWeights = 1e-3, kLeastNorm = 0x1p-126;  // no division by 0
  const Tensor g = cast(gradient, DType::F32), p = cast(parameter, DType::F32);
  Ints axes;
  for (int axis = g.rank() < 2 ? 0 : 1; axis < g.rank(); ++axis) axes.push_back(axis);
  const auto norms = [&](const Tensor& x) {
    return axes.empty() ? abs(x) : sqrt(sum(x * x, axes, true));
  };
  const Tensor most = maximum(norms(p), kLeastWeights) * share;
  return g * minimum(most / maximum(norms(g) * abs(stats.multiplier), kLeastNorm), 1.0);
}

// Whether an update rounds some of them at random: those in bf16 that have no masters.
bool rounds_parameters(const std::vector<std::size_t>& members, const Optimizer& opt) {
  return opt.spec().rounding == Rounding::Stochastic &&
         std::ranges::any_of(members, [&](std::size_t i) {
           return !opt.master(i) && opt.parameters()[i]->type.dtype == DType::BF16;
         });
}

// By its name, so that the same is drawn however parameters are shared out among update ops.
std::int64_t key_of(const Variable& parameter) {
  return static_cast<std::int64_t>(identity_hash("update." + parameter.name.str()));
}

// One update op for the parameters `members`, all of one group (null: of none), all with masters of
// one form or all without, all of which have had `applied` updates.
void apply_rule(const std::vector<std::size_t>& members, const std::vector<Tensor>& gradients,
                const GradStats& stats, const Tensor& lr, const Tensor& applied,
                const Optimizer& opt, const ParameterGroup* group) {
  if (members.empty()) return;
  Emitter& e = current_emitter();
  const double weight_decay =
      number_of(&ParameterGroup::weight_decay, opt.spec().weight_decay, group);
  const UpdateRule& rule = opt.spec().rule;
  UpdateForm form;
  form.master = master_format(opt, members[0]);
  form.states = opt.spec().states;
  form.weight_decay = weight_decay;
  form.clip_value = number_of(&ParameterGroup::clip_value, opt.spec().clip_value, group);
  if (rounds_parameters(members, opt)) form.rounding = Rounding::Stochastic;
  const bool is_random = form.rounding == Rounding::Stochastic || form.states != StateFormat::F32;
  const double adaptive =
      number_of(&ParameterGroup::clip_adaptive, opt.spec().clip_adaptive, group);
  const bool has_master = form.master.has_value();
  const std::size_t states = rule.states().size();
  const auto update = [&] {  // the old values are let go of before the new ones are declared
    UpdateOperands o;
    o.lr = lr, o.multiplier = stats.multiplier, o.finite = stats.finite, o.applied = applied;
    if (is_random) o.random = e.state(random_state());
    o.states.resize(states);
    for (const std::size_t i : members) {
      o.parameters.push_back(e.state(opt.parameters()[i]));
      o.gradients.push_back(
          adaptive > 0 ? clipped_by_rows(gradients[i], o.parameters.back(), stats, adaptive)
                       : gradients[i]);
      if (has_master) o.masters.push_back(e.state(opt.master(i)));
      for (std::size_t k = 0; k < states; ++k) o.states[k].push_back(e.state(opt.moment(k, i)));
      form.decay.push_back(opt.decays(i));
      if (is_random) form.keys.push_back(key_of(*opt.parameters()[i]));
      form.rest.push_back(opt.is_rest(i));
    }
    return emit_update(rule, o, form);
  };
  const UpdateResults r = update();
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::size_t i = members[m];
    e.update(opt.parameters()[i], r.parameters[m]);
    if (has_master) e.update(opt.master(i), r.masters[m]);
    for (std::size_t k = 0; k < states; ++k) e.update(opt.moment(k, i), r.states[k][m]);
  }
  if (!opt.spec().average) return;
  const Tensor weight = average_weight(applied, stats.finite, opt.spec().average);
  for (std::size_t m = 0; m < members.size(); ++m) {
    const VariablePtr average = opt.average(members[m]);
    const bool is_whole = form.master == StateFormat::F32;
    const Tensor before = e.state(average),
                 now = is_whole ? r.masters[m] : cast(r.parameters[m], DType::F32);
    e.update(average, lerp(before, now, weight));
  }
}

// The learning rate of each group, by the optimizer's own schedule; null: of those without one.
std::map<const ParameterGroup*, Tensor> learning_rates(const Tensor& applied,
                                                       const Optimizer& opt) {
  const OptimizerSpec& spec = opt.spec();
  Tensor factor;
  if (const VariablePtr plateau = opt.plateau())
    factor = reshape(cast(slice(current_emitter().state(plateau), 0, 0, 1), DType::F32), Shape{});
  const auto rate = [&](double base) {
    const Tensor lr = learning_rate(applied, base, spec.schedule);
    return factor.is_defined() ? lr * factor : lr;
  };
  std::map<const ParameterGroup*, Tensor> rates;
  const Tensor lr = rate(spec.lr);
  rates[nullptr] = lr;
  for (const ParameterGroup& group : spec.groups) rates[&group] = group.lr ? rate(*group.lr) : lr;
  return rates;
}

// Gradients are multiplied as they are read, by what unscales and clips them.
void uphill_where_asked(GradStats& stats, const Optimizer& opt) {
  if (opt.spec().maximize) stats.multiplier = neg(stats.multiplier);
}

// All statistics first, then the parameters of each group: those that are their own and those with
// masters of each form, and those of each count, go through one update op each.
GradStats update_late(const std::vector<Tensor>& gradients, const GradientState& given,
                      const Counts& counts, const Ints& sought, const Optimizer& opt,
                      const std::map<const ParameterGroup*, Tensor>& rates) {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < gradients.size(); ++i) all.push_back(gradients[parameter_of(i, opt)]);
  const Tensor& divisor = given.scale;
  GradStats stats = grad_stats(divisor, all, opt.spec().clip_norm, sought);
  if (given.finite.is_defined()) stats.finite = minimum(stats.finite, given.finite);
  uphill_where_asked(stats, opt);
  // Of a group with a limit of its own the norm is its own; whether the step applies is
  // everybody's.
  const auto of = [&](const ParameterGroup* group) {
    GradStats own = stats;
    std::vector<Tensor> members;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (opt.group(i) == group) members.push_back(gradients[i]);
    if (!group || !group->clip_norm || members.empty()) return own;
    own.multiplier = grad_stats(divisor, members, *group->clip_norm).multiplier;
    uphill_where_asked(own, opt);
    return own;
  };
  std::vector<const ParameterGroup*> groups = {nullptr};
  for (const ParameterGroup& group : opt.spec().groups) groups.push_back(&group);
  for (const ParameterGroup* group : groups) {
    const GradStats own = of(group);
    for (const auto format : {std::optional<StateFormat>(), std::optional(StateFormat::F32),
                              std::optional(StateFormat::Split)})
      for (const auto& [count, updates] : counts) {
        std::vector<std::size_t> members;
        for (std::size_t i = 0; i < opt.parameters().size(); ++i)
          if (opt.group(i) == group && master_format(opt, i) == format &&
              opt.applied_to(i) == count)
            members.push_back(i);
        apply_rule(members, gradients, own, rates.at(group), updates, opt, group);
      }
  }
  count_update(counts, stats.finite);
  return stats;
}

// Each parameter by itself, from the last to the first: nothing of an update waits for
// another gradient, so that the compiled step need not either (the pass hoist-updates). The step
// counts as applied: its finite gradients were.
GradStats update_early(const std::vector<Tensor>& gradients, const GradientState& given,
                       const Counts& counts, const Ints& sought, const Optimizer& opt,
                       const std::map<const ParameterGroup*, Tensor>& rates) {
  std::vector<Tensor> squares;
  const Tensor& divisor = given.scale;
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const std::size_t i = parameter_of(k, opt);
    squares.push_back(grad_squares({&gradients[i], 1}));
    GradStats own = grad_verdict(divisor, {&squares.back(), 1});
    if (given.finite.is_defined()) own.finite = minimum(own.finite, given.finite);
    uphill_where_asked(own, opt);
    const auto updates = std::find_if(counts.begin(), counts.end(),
                                      [&](const auto& c) { return c.first == opt.applied_to(i); });
    apply_rule({i}, gradients, own, rates.at(opt.group(i)), updates->second, opt, opt.group(i));
  }
  count_update(counts, full({}, 1, DType::I32));
  return grad_verdict(divisor, squares, 0, sought);
}

// Gradients of a loss times the optimizer's scale, or as gradients_of() gave them where it has
// none. Those that a loop has computed anew it has divided, or not, as it knows.
void need_own_scale(const std::vector<Tensor>& gradients, const Optimizer& opt) {
  const VariablePtr own = own_scale(opt);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::vector<VariablePtr> in = noted_loss_scales(gradients[i]);
    if (in.empty() || (in.size() == 1 && in[0] == own)) continue;
    throw UserError("E0808", "the gradients are multiplied with another loss scale than the step's")
        .saw("a gradient of '" + opt.parameters()[i]->name.str() +
             "' of a loss that a scaler has scaled" +
             (own && std::ranges::count(in, own) == 2 ? ", with the optimizer's own scale besides"
                                                      : ""))
        .need("gradients of the loss itself, or the scaler's scale divided out of them")
        .advice(
            "scaler.unscale(gradients) of a LossScaler; or scaler.scale(loss).backward() and "
            "scaler.step(optimizer)");
  }
}

}  // namespace

std::vector<std::string> culprit_names(const Optimizer& opt) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < opt.parameters().size(); ++i)
    if (const VariablePtr& p = opt.parameters()[parameter_of(i, opt)]; p->requires_grad)
      names.push_back(p->name.str());
  return names;
}

std::vector<Tensor> scaled_gradients(const Tensor& loss, Optimizer& opt) {
  if (loss.rank() != 0)
    refuse(UserError("E0803", "minimize() needs a scalar loss")
               .saw(loss.type().str())
               .advice("take the mean or the sum first"),
           loss);
  hooks::need_outside("minimize()");
  Where w = current_where();
  w.pass = "minimize";
  w.phase = Phase::Backward;
  Emitter& e = *loss.emitter();
  EmitterScope scope(e);
  const LossScalesMet asked;
  const std::vector<Tensor> gradients =
      e.variable_gradients(loss, e.state(opt.scale), opt.trained().parameters(), w);
  note_loss_scales(gradients, asked.met(), own_scale(opt));
  return gradients;
}

StepResult update_parameters(const Tensor& loss, std::vector<Tensor> gradients, Optimizer& whole) {
  return update_parameters(loss, std::move(gradients), whole, {});
}

StepResult update_parameters(const Tensor& loss, std::vector<Tensor> gradients, Optimizer& whole,
                             const GradientState& given) {
  const Optimizer& opt = whole.trained();
  if (gradients.size() != opt.parameters().size())
    throw UserError("E0807", "the gradients are not those of the optimizer's parameters")
        .saw(std::to_string(gradients.size()) + " gradients")
        .need(std::to_string(opt.parameters().size()) + ", in the optimizer's order");
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!gradients[i].is_defined())
      throw UserError("E0302", "a gradient to step with is undefined")
          .saw("an empty tensor handle for '" + opt.parameters()[i]->name.str() + "'")
          .need("a gradient for each of the optimizer's parameters")
          .advice("zeros, full(shape, 0), where a loss does not depend on one");
  need_own_values(opt.parameters(), "a step is made");
  EmitterScope emitter_scope(emitter_of(loss));
  UpdatePhase phase;
  Emitter& e = current_emitter();
  const Tensor scale = given.scale.is_defined() ? given.scale : e.state(opt.scale);
  const Tensor applied = e.state(opt.applied);
  const Ints sought = backward_order(gradients, opt);
  Tensor divisor = scale;
  if (!given.scale.is_defined()) need_own_scale(gradients, opt);
  if (opt.accumulation() > 1) {
    // Where a scale is given its giver has checked the sums.
    if (!given.scale.is_defined()) sums_scale(opt).check(own_scale(opt));
    whole.count_last_micro_batch();
    sums_scale(opt).forget();
    gradients = add_accumulated(gradients, opt);
    divisor = scale * static_cast<double>(opt.accumulation());
  }
  const auto rates = learning_rates(applied, opt);
  const auto update = opt.spec().update == UpdateTime::Early ? update_early : update_late;
  const GradStats stats =
      update(gradients, {divisor, given.finite}, counts_of(opt, applied), sought, opt, rates);
  empty_accumulators(whole);
  forget_left_gradients(whole.given());
  const StepResult result = {loss,         stats.norm,   rates.at(nullptr), identity(scale),
                             stats.finite, stats.culprit};
  LoopTaps::tell(result, whole);
  return result;
}

void Optimizer::zero_grad() {
  if (const amp::ScopeRecord& r = scope_record(); r.is_in_scope && !r.set_aside.empty())
    throw UserError("E0808", "zero_grad() is not its turn")
        .saw("zero_grad() within a block of amp::scale_loss(), behind another block's gradients")
        .need("zero_grad() before the first block of a step, or behind the step")
        .advice("the first block's gradients wait for this block's end, and would come back");
  UpdatePhase phase;
  forget_left_gradients(given());
  empty_accumulators(*this);
  if (accumulation() > 1) sums_scale(*this).forget();
  count_none();
}

void update_scaler(const StepResult& step, Optimizer& opt) {
  update_scaler(step.finite, opt.scaler_variables(), opt.scaler());
}

void next_scale(const Tensor& finite, const ScalerVariables& state,
                const scalar::ScalerRule& rule) {
  EmitterScope emitter_scope(emitter_of(finite));
  UpdatePhase phase;
  Emitter& e = current_emitter();
  const ScalerTensors scaler{e.state(state.scale), e.state(state.good_steps),
                             e.state(state.overflow_run), e.state(state.skipped)};
  const ScalerTensors next = scaler_update(scaler, finite, rule);
  e.update(state.scale, next.scale);
  e.update(state.good_steps, next.good_steps);
  e.update(state.overflow_run, next.overflow_run);
  e.update(state.skipped, next.skipped);
}

void update_scaler(const Tensor& finite, const ScalerVariables& state,
                   const scalar::ScalerRule& rule) {
  EmitterScope emitter_scope(emitter_of(finite));
  next_scale(finite, state, rule);
  advance_random();
}

void advance_random() {
  UpdatePhase phase;
  advance_step();
}

StepResult apply_gradients(const Tensor& loss, std::vector<Tensor> gradients, Optimizer& opt) {
  StepResult result = update_parameters(loss, std::move(gradients), opt);
  update_scaler(result, opt);
  give_up_if_hopeless(result, opt);
  return result;
}

namespace {
// Of a loss that no loss scale is in yet.
std::vector<Tensor> gradients_of_unscaled(const Tensor& loss, Optimizer& opt) {
  const WholeStep step;
  return scaled_gradients(loss, opt);
}
}  // namespace

StepResult minimize(const Tensor& loss, Optimizer& opt) {
  EmitterScope emitter_scope(emitter_of(loss));
  return apply_gradients(loss, gradients_of_unscaled(loss, opt), opt);
}

// Where the optimizer has no loss scale the sums may have that of a GradScaler, whose step()
// divides by it.
Tensor accumulate(const Tensor& loss, Optimizer& whole) {
  EmitterScope emitter_scope(emitter_of(loss));
  if (whole.accumulation() < 2)
    throw UserError("E0808", "accumulate() has no sums to add to")
        .saw("an optimizer that takes one batch an update")
        .advice("optimizer.set_accumulation(N), with N 2 or more, before the first step");
  const VariablePtr own = own_scale(whole);
  const std::vector<Tensor> gradients =
      own ? gradients_of_unscaled(loss, whole) : scaled_gradients(loss, whole);
  const std::vector<VariablePtr> others = noted_loss_scales(gradients[0]);
  if (others.size() > 1)
    throw UserError("E0808", "a micro-batch is multiplied with two loss scales")
        .saw("accumulate() of a loss that was scaled twice")
        .need("scaler.scale(loss) of the loss itself, once");
  const Optimizer& opt = whole.trained();
  UpdatePhase phase;
  const std::vector<Tensor> sums = add_accumulated(gradients, opt);
  sums_scale(whole).add(others.empty() ? own : others[0]);
  whole.count_micro_batch();
  for (std::size_t i = 0; i < sums.size(); ++i)
    current_emitter().update(opt.accumulators()[i], sums[i]);
  advance_micro_batch();
  LoopTaps::tell(LoopWord::Loss, loss);
  return loss;
}

}  // namespace aloft
