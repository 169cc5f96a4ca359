// Gradients in eager mode, and what the tape forgets (eager_backward.cpp: what backward() leaves).
//
// A node of the tape stays while a tensor that depends on it, or one of its own results, is held
// outside. A step's backward is the last use of what its target was computed from by way of the
// step's parameters: tensors on these ways no longer keep anything, so that a loop in which losses
// or logits are kept holds one step's values at a time. What another tensor needs stays: of two
// losses on one forward each can be differentiated. A loss whose parameters belong to several
// optimizers is used up when each has had its gradients, or when one of them takes the next loss.
// A gradient that would have to pass what was forgotten is refused, never zero.
#include <algorithm>
#include <utility>

#include "autodiff/differentiate.h"
#include "autodiff/history.h"
#include "base/error.h"
#include "frontend/eager_emitter.h"
#include "frontend/eager_taps.h"
#include "frontend/hooks.h"
#include "frontend/keep_graph.h"
#include "frontend/loss_scale_uses.h"
#include "frontend/variable_values.h"
#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/constant.h"

namespace aloft {

namespace {

// Below these a sweep is not worth its time.
constexpr std::size_t kFewBytes = std::size_t{32} << 20;
constexpr std::uint32_t kFewNodes = 4096;
// What a value costs beside its own bytes, about.
constexpr std::size_t kCellBytes = 1024;

UserError unrecorded(const std::string& saw) {
  return UserError("E0321", "a gradient was asked for through what is not recorded")
      .saw(saw)
      .need("a tensor computed from the parameters since they were last updated with it");
}

constexpr const char* kUsed =
    "a step's backward is the last use of what it passes: compute all losses before it, or "
    "detach() what is carried over from an earlier step; gradients of gradients want "
    "gradients_of(loss, parameters, {.create_graph = true})";

constexpr const char* kFromProgram =
    "compute the whole loss eagerly, or compile the whole step; where the result is meant as a "
    "constant, detach() it or call the compiled function under NoGrad";

// True while one lives.
class Held {
 public:
  explicit Held(bool& flag) : flag_(flag), saved_(flag) { flag_ = true; }
  ~Held() { flag_ = saved_; }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  bool& flag_;
  bool saved_;
};

// Whether what was born at `born` may be in what `leaf` was computed from.
bool may_hide(const EagerCell& leaf, std::uint64_t born) {
  return leaf.youngest_argument ? born <= *leaf.youngest_argument : born < leaf.born;
}

}  // namespace

// The target has a place on the tape that is not a leaf's.
void EagerEmitter::check_target(const Tensor& target) const {
  check_thread();
  const EagerCell& c = cell(target);
  const bool is_leaf = is_recorded(c) && tape_.node(c.id.node).op == Name("input");
  if (is_recorded(c) && !is_leaf) return;
  if (c.youngest_argument)
    throw unrecorded("a " + c.type.str() + " that a compiled function returned")
        .advice(kFromProgram);
  if (c.lost != Lost::Nothing)
    throw unrecorded("a " + c.type.str() +
                     " whose history an earlier backward() or step used, or a dropped tape held")
        .advice(kUsed);
  throw unrecorded("a " + c.type.str() +
                   " from host memory, from a compiled program or computed under NoGrad")
      .advice("compute it from the parameters outside NoGrad, in eager mode");
}

// A variable's value that was read, and that somebody whom this session does not know (another
// thread) has written over before it was copied.
bool EagerEmitter::is_overwritten(const EagerCell& c) {
  return c.variable && c.is_borrowed && c.buffer.is_at(*c.variable->buffer) &&
         c.version != c.variable->version;
}

// Nodes that were computed from parameters as they are behind a step, and from what that step's
// backward passed: nobody detached what was carried over. Two losses on one forward are none.
std::vector<bool> EagerEmitter::nodes_across_steps() const {
  std::vector<std::uint64_t> passed(tape_.capacity(), UINT64_MAX);  // by which backward, first
  std::vector<std::uint64_t> read(tape_.capacity(), 0);             // when the last parameter was
  std::vector<bool> across(tape_.capacity(), false);
  for (std::uint32_t n = 0; n < tape_.capacity(); ++n) {
    const Node& node = tape_.node(n);
    const auto c = values_.find({n, 0});
    if (c == values_.end()) continue;
    if (c->second->passed > 0) passed[n] = c->second->passed;
    if (node.in.empty() && c->second->variable && is_trainable(*c->second->variable))
      read[n] = c->second->born;
    if (!passes_gradient(node)) continue;
    for (ValueId v : node.in) {
      if (!is_float(tape_.type(v).dtype)) continue;
      passed[n] = std::min(passed[n], passed[v.node]);
      read[n] = std::max(read[n], read[v.node]);
    }
    across[n] = read[n] > passed[n];
  }
  return across;
}

// No way of the gradient ends where a history was dropped that could hold what is asked for: a
// parameter, or a tensor that is as old as `oldest`.
void EagerEmitter::check_history(const History& history, std::uint64_t oldest,
                                 bool through_parameters) const {
  const std::vector<bool> across = nodes_across_steps();
  for (std::uint32_t n = 0; n < tape_.capacity(); ++n)
    if (history.holds(n) && across[n])
      throw unrecorded("a tensor computed from a " + tape_.type({n, 0}).str() +
                       " that passes an earlier step's values")
          .advice(kUsed);
  for (std::uint32_t n : tape_.states())
    if (const EagerCell& c = *values_.at({n, 0}); history.holds(n) && is_overwritten(c))
      throw unrecorded("a tensor computed from '" + c.variable->name.str() +
                       "', which another thread has written since")
          .advice("compute losses again after another thread has trained the model");
  for (std::uint32_t n : tape_.inputs()) {
    const EagerCell& leaf = *values_.at({n, 0});
    if (!history.holds(n) || leaf.lost == Lost::Nothing) continue;
    const bool hides_parameter = through_parameters && leaf.lost == Lost::Parameters;
    if (!hides_parameter && !may_hide(leaf, oldest)) continue;
    if (leaf.youngest_argument)
      throw unrecorded("a tensor computed from a " + leaf.type.str() +
                       " that a compiled function returned")
          .advice(kFromProgram);
    throw unrecorded("a tensor computed from a " + leaf.type.str() +
                     " whose history an earlier backward() or step used")
        .advice(kUsed);
  }
}

std::vector<Tensor> EagerEmitter::differentiate_tape(const Tensor& target, const Tensor& seed,
                                                     const std::vector<Tensor>& wrt,
                                                     const Where& where) {
  Emitter& emitter = outer_ ? static_cast<Emitter&>(*outer_) : *this;
  EmitterScope emitter_scope(emitter);
  const WithGrad with_grad;  // an op whose gradient is its body's is recorded to find it
  Scope scope(where_of_gradients(where));
  const auto through = [&](const Tensor& t) {
    const Tensor now = current(t);
    return Tensor(&emitter, now.id(), now.held());
  };
  const Tensor to = through(target);
  const Tensor from = broadcast_like(cast(through(seed), to.dtype()), to);
  std::vector<Tensor> of;
  of.reserve(wrt.size());
  for (const Tensor& t : wrt) of.push_back(through(t));
  const Held numbers(is_differentiating_);
  if (!taps_) return differentiate(tape_, emitter, to, from, of, lookout());
  std::vector<GradientView> views = taps_->asked_gradients(*this);
  const auto gradients = differentiate(tape_, emitter, to, from, of, lookout(), views);
  taps_->show_gradients(*this, views);
  return gradients;
}

Lookout EagerEmitter::lookout() const {
  Lookout hooked;
  for (const auto& [id, c] : values_)
    if (!c->notes.hooks.empty()) hooked.values.insert(id);
  hooked.see = [this](ValueId v, const Tensor& gradient) {
    return hooks::run_on_gradient(values_.at(v)->notes.hooks, gradient);
  };
  return hooked;
}

std::vector<Tensor> EagerEmitter::gradients(const Tensor& target, const Tensor& seed,
                                            std::span<const Tensor> wrt, const Where& where) {
  std::uint64_t oldest = UINT64_MAX;
  bool through_parameters = false, is_own = false;
  for (const Tensor& t : wrt) {
    const EagerCell& c = cell(t);
    is_own = is_own || t.held() == target.held();
    if (c.lost != Lost::Nothing && !c.youngest_argument && !is_recorded(c)) check_target(t);
    if (c.variable)
      through_parameters = true;
    else
      oldest = std::min(oldest, c.born);
  }
  if (!is_own) check_target(target);
  const std::vector<Tensor> of(wrt.begin(), wrt.end());
  if (is_recorded(cell(target)))
    check_history(History(tape_, cell(target).id), oldest, through_parameters);
  std::vector<Tensor> result = differentiate_tape(target, seed, of, where);
  EmitterScope scope(outer_ ? static_cast<Emitter&>(*outer_) : *this);
  const Scope backward(where_of_gradients(where));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = result[i].is_defined() ? cast(result[i], of[i].dtype())
                                       : broadcast_like(scalar_like(of[i], 0), of[i]);
  return result;
}

std::vector<Tensor> EagerEmitter::variable_gradients(const Tensor& target, const Tensor& seed,
                                                     std::span<const VariablePtr> variables,
                                                     const Where& where) {
  check_target(target);
  forget_earlier_step(target, variables);
  check_target(target);  // it is not forgotten, and has the number that it has now
  const History history(tape_, cell(target).id);
  check_history(history, UINT64_MAX, true);
  if (WholeStep::is_taken())
    for (std::uint32_t n : tape_.states())
      if (history.holds(n) && is_loss_scale(*values_.at({n, 0})->variable))
        throw is_scaled_already();
  if (LossScalesMet::is_asked()) LossScalesMet::tell(loss_scales_of(target, history));
  std::map<const Variable*, std::vector<std::uint32_t>> values;  // nodes, oldest first
  for (std::uint32_t n : tape_.states())
    if (history.holds(n)) values[values_.at({n, 0})->variable.get()].push_back(n);
  std::vector<Tensor> wrt;
  for (const VariablePtr& v : variables)
    for (std::uint32_t n : values[v.get()]) wrt.push_back(handle({n, 0}));
  if (wrt.empty()) throw depends_on_none(cell(target).type);
  std::vector<Tensor> parts = differentiate_tape(target, seed, wrt, where);

  // Values that stay recorded; or leaves, behind which the graph is used up.
  const bool keeps = KeepGraph::is_asked();
  std::vector<Tensor> results;
  {
    std::optional<NoGrad> no_grad;
    if (!keeps) no_grad.emplace();
    EmitterScope emitter_scope(outer_ ? static_cast<Emitter&>(*outer_) : *this);
    Scope scope(where_values_are_added(where));
    auto part = parts.begin();
    for (const VariablePtr& v : variables) {
      const auto& nodes = values[v.get()];
      const auto end = part + static_cast<std::ptrdiff_t>(nodes.size());
      const Tensor sum = sum_of_values({part, end}, v->type);
      const Tensor gradient = hooks::run_on_gradient(v, sum);
      part = end;
      if (keeps) {
        results.push_back(gradient);
        continue;
      }
      CellPtr c = copy_of(cell(gradient));
      if (taps_) taps_->copied(gradient, c);
      c->lost = Lost::Parameters;
      for (std::uint32_t n : nodes)
        c->first_use =
            c->first_use < 0 ? history.first_use(n) : std::min(c->first_use, history.first_use(n));
      leave_unrecorded(*c);
      results.push_back(wrap(c));
    }
  }
  if (keeps) return results;
  parts.clear();
  forget_used(history, wrt, take_part(target, history, variables));
  return results;
}

// References of ours to each cell: whoever has more is held outside.
std::map<const void*, long> EagerEmitter::own_references() const {
  std::map<const void*, long> own;
  for (const auto& [id, c] : values_) ++own[c.get()];
  for (const auto& [variable, c] : states_) ++own[c.get()];
  if (outer_) outer_->count_cached(own);
  return own;
}

void EagerEmitter::close_over_operands(std::vector<bool>& kept) const {
  for (std::uint32_t n = tape_.capacity(); n-- > 0;)
    if (kept[n])
      for (ValueId v : tape_.node(n).in) kept[v.node] = true;
}

std::size_t EagerEmitter::kept_bytes(const EagerCell& c) { return c.type.max_bytes() + kCellBytes; }

// Variables that nobody else has any more: where nothing is recorded, no sweep comes by them.
void EagerEmitter::drop_dead_states() {
  std::erase_if(states_, [&](const auto& entry) {
    const EagerCell& c = *entry.second;
    const bool is_dead = c.variable.use_count() == 1 && !is_recorded(c);
    if (is_dead) state_bytes_ -= kept_bytes(c);
    return is_dead;
  });
  drop_states_at_bytes_ = std::max(kFewBytes, 2 * state_bytes_);
}

void EagerEmitter::sweep_if_grown() {
  if (state_bytes_ >= drop_states_at_bytes_) drop_dead_states();
  if (tape_bytes_ < sweep_at_bytes_ && tape_.capacity() < sweep_at_nodes_) return;
  sweep();
  sweep_at_bytes_ = std::max(kFewBytes, 2 * tape_bytes_);
  sweep_at_nodes_ = std::max(kFewNodes, 2 * tape_.capacity());
}

// Drops what nobody can differentiate any more: evaluation without NoGrad must not hold the values
// of past batches. No bit of any gradient changes by it.
void EagerEmitter::sweep() {
  if (is_differentiating_) return;  // a hook computes
  const auto own = own_references();
  std::vector<bool> kept(tape_.capacity(), false);
  for (const auto& [id, c] : values_)
    if (c.use_count() > own.at(c.get())) kept[id.node] = true;
  // The variables as they are now; few, and every forward reads them again.
  for (const auto& [variable, c] : states_)
    if (is_recorded(*c) && c->variable.use_count() > 1) kept[c->id.node] = true;
  close_over_operands(kept);
  rebuild(kept);
}

// For each node what of its history a gradient could ask for: `reaches_parameter` where a trainable
// parameter on the tape, else what earlier droppings left.
std::vector<Lost> EagerEmitter::ways_back(std::vector<bool>& reaches_parameter) const {
  std::vector<Lost> lost(tape_.capacity(), Lost::Nothing);
  reaches_parameter.assign(tape_.capacity(), false);
  for (std::uint32_t n = 0; n < tape_.capacity(); ++n) {
    const Node& node = tape_.node(n);
    if (node.in.empty()) {
      const auto c = values_.find({n, 0});
      const bool is_source = node.op == Name("input") || node.op == Name("state");
      if (!is_source || c == values_.end()) continue;
      lost[n] = std::max(Lost::Values, c->second->lost);
      reaches_parameter[n] = c->second->variable && is_trainable(*c->second->variable);
    }
    if (!passes_gradient(node)) continue;
    for (ValueId v : node.in) {
      if (!is_float(tape_.type(v).dtype)) continue;
      lost[n] = std::max(lost[n], lost[v.node]);
      reaches_parameter[n] = reaches_parameter[n] || reaches_parameter[v.node];
    }
  }
  return lost;
}

// Which nodes a gradient passes on its way back to one of `variables`.
std::vector<bool> EagerEmitter::nodes_behind(const std::set<const Variable*>& variables) const {
  std::vector<bool> behind(tape_.capacity(), false);
  if (variables.empty()) return behind;
  for (std::uint32_t n : tape_.states())
    behind[n] = variables.contains(values_.at({n, 0})->variable.get());
  for (std::uint32_t n = 0; n < tape_.capacity(); ++n)
    if (passes_gradient(tape_.node(n)))
      for (ValueId v : tape_.node(n).in)
        behind[n] = behind[n] || (behind[v.node] && is_float(tape_.type(v).dtype));
  return behind;
}

std::set<const Variable*> EagerEmitter::trainable_behind(const History& history) const {
  std::set<const Variable*> found;
  for (std::uint32_t n : tape_.states())
    if (const VariablePtr& v = values_.at({n, 0})->variable; history.holds(n) && is_trainable(*v))
      found.insert(v.get());
  return found;
}

// An optimizer that goes on to another loss leaves those that it took its part of to nobody: a loop
// that keeps its losses holds one step's values at a time. A target that would go with them, being
// a part of one or carried over from one, is refused before anything is forgotten.
void EagerEmitter::forget_earlier_step(const Tensor& target,
                                       std::span<const VariablePtr> variables) {
  const auto is_left = [&](const Part& p, const CellPtr& loss) {
    return loss != target.held() &&
           std::any_of(variables.begin(), variables.end(),
                       [&](const VariablePtr& v) { return p.taken.contains(v.get()); });
  };
  for (const Part& p : parts_) {
    const CellPtr c = p.target.lock();
    if (!c || !is_recorded(*c) || !is_left(p, c)) continue;
    const ValueId id = cell(target).id;
    check_history(History(tape_, id), UINT64_MAX, true);
    if (History(tape_, c->id).holds(id.node))
      throw unrecorded("a " + tape_.type(id).str() + " that is part of an earlier step's loss")
          .advice(kUsed);
  }
  for (Part& p : std::exchange(parts_, {})) {
    const CellPtr c = p.target.lock();
    if (!c || !is_recorded(*c)) continue;
    if (!is_left(p, c)) {
      parts_.push_back(std::move(p));
      continue;
    }
    const History history(tape_, c->id);
    std::vector<Tensor> wrt;
    for (std::uint32_t n : tape_.states())
      if (history.holds(n)) wrt.push_back(handle({n, 0}));
    forget_used(history, wrt, {});
  }
}

// Notes that `variables` have had the gradients of `target`; those that have not are what it is
// kept for.
std::set<const Variable*> EagerEmitter::take_part(const Tensor& target, const History& history,
                                                  std::span<const VariablePtr> variables) {
  std::set<const Variable*> wanted = trainable_behind(history);
  auto part = std::find_if(parts_.begin(), parts_.end(),
                           [&](const Part& p) { return p.target.lock() == target.held(); });
  if (part == parts_.end())
    part = parts_.insert(part, Part{std::static_pointer_cast<EagerCell>(target.held()), {}});
  for (const VariablePtr& v : variables) part->taken.insert(v.get());
  for (const Variable* v : part->taken) wanted.erase(v);
  if (wanted.empty()) parts_.erase(part);
  return wanted;
}

// After a step's gradients with respect to `wrt`: keeps what those tensors were computed from that
// somebody holds, that depend on a parameter, and that do not lie on the ways just used, or do but
// have gradients for variables that are `still_wanted`.
void EagerEmitter::forget_used(const History& used, const std::vector<Tensor>& wrt,
                               const std::set<const Variable*>& still_wanted) {
  std::vector<bool> spent(tape_.capacity(), false);
  for (const Tensor& t : wrt) spent[cell(t).id.node] = true;
  for (std::uint32_t n = 0; n < tape_.capacity(); ++n)
    if (used.holds(n) && passes_gradient(tape_.node(n)))
      for (ValueId v : tape_.node(n).in) spent[n] = spent[n] || spent[v.node];
  const std::vector<bool> wanted = nodes_behind(still_wanted);
  std::vector<bool> reaches_parameter;
  ways_back(reaches_parameter);
  const std::vector<bool> across = nodes_across_steps();

  const auto own = own_references();
  const auto is_result = [&](ValueId id) { return !tape_.node(id.node).in.empty(); };
  std::vector<bool> kept(tape_.capacity(), false);
  std::vector<CellPtr> released;
  for (const auto& [id, c] : values_) {
    if (c.use_count() <= own.at(c.get()) || !is_result(id)) continue;
    if (spent[id.node] && !wanted[id.node])
      released.push_back(c);
    else if (reaches_parameter[id.node] && !across[id.node])
      kept[id.node] = true;
  }
  close_over_operands(kept);
  // Where another tensor needs such a value, the tape has it in a cell of its own.
  for (const CellPtr& c : released) {
    if (!kept[c->id.node]) continue;
    CellPtr mine = copy_of(*c);
    mine->id = c->id;
    mine->generation = generation_;
    mine->notes = c->notes;
    values_[c->id] = std::move(mine);
    c->generation = 0;
    c->lost = Lost::Parameters;
  }
  released.clear();
  // A parameter's cast is no value of the step: the next forward uses it again.
  const auto is_value = [&](const Node& node) {
    return !node.in.empty() && !(node.op == Name("cast") && tape_.node(node.in[0].node).in.empty());
  };
  for (const auto& [id, c] : values_)
    if (spent[id.node] && is_value(tape_.node(id.node)) && c->passed == 0) c->passed = born_;
  keep_only(kept);
}

// Values that leave the tape remember what they lose by it.
void EagerEmitter::keep_only(const std::vector<bool>& kept) {
  std::vector<bool> reaches_parameter;
  const std::vector<Lost> lost = ways_back(reaches_parameter);
  for (const auto& [id, c] : values_) {
    if (kept[id.node]) continue;
    c->generation = 0;
    if (!tape_.node(id.node).in.empty())
      c->lost = reaches_parameter[id.node] ? Lost::Parameters : lost[id.node];
  }
  rebuild(kept);
}

void EagerEmitter::rebuild(const std::vector<bool>& kept) {
  // Variables that nobody else has any more.
  std::erase_if(states_, [&](const auto& entry) {
    const EagerCell& c = *entry.second;
    const bool is_dead = c.variable.use_count() == 1 && (!is_recorded(c) || !kept[c.id.node]);
    if (is_dead) state_bytes_ -= kept_bytes(c);
    return is_dead;
  });
  if (std::find(kept.begin(), kept.end(), true) == kept.end()) {
    reset();
    return;
  }
  Graph old = std::move(tape_);
  tape_ = Graph();
  tape_.name = old.name;
  const auto cells = std::move(values_);
  values_.clear();
  std::map<ValueId, ValueId> renamed;
  tape_bytes_ = 0;
  for (std::uint32_t n = 0; n < old.capacity(); ++n) {
    if (!kept[n]) {
      for (std::uint32_t i = 0; i < old.node(n).out.size(); ++i)
        if (const auto it = cells.find({n, i}); it != cells.end()) it->second->generation = 0;
      continue;
    }
    const Node& node = old.node(n);
    std::vector<ValueId> in;
    for (ValueId v : node.in) in.push_back(renamed.at(v));
    const std::uint32_t now = tape_.add(node.op, node.attrs, std::move(in), node.out, node.where);
    tape_.set_form(now, node.form);
    for (std::uint32_t i = 0; i < node.out.size(); ++i) {
      const CellPtr& c = cells.at({n, i});
      renamed[{n, i}] = c->id = values_.emplace(ValueId{now, i}, c).first->first;
      tape_bytes_ += c->type.max_bytes();
    }
  }
  if (outer_) outer_->rename_casts(renamed);
}

void EagerEmitter::reset() {
  tape_ = Graph();
  tape_.name = "tape";
  values_.clear();
  leaves_ = 0;
  tape_bytes_ = 0;
  ++generation_;
  if (outer_) outer_->forget_casts();
}

void EagerEmitter::clear_tape() {
  draws_.clear();
  if (tape_.capacity() > 0) keep_only(std::vector<bool>(tape_.capacity(), false));
  states_.clear();
  state_bytes_ = 0;
}

}  // namespace aloft
