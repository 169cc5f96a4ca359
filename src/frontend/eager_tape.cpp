// Gradients in eager mode, and what the tape forgets.
//
// A node of the tape stays while a tensor that depends on it, or one of its own results, is held
// outside. A step's backward is the last use of what its target was computed from by way of the
// step's parameters: tensors on these ways no longer keep anything, so that a loop in which losses
// or logits are kept holds one step's values at a time. What another tensor needs stays: of two
// losses on one forward each can be differentiated. A gradient that would have to pass what was
// forgotten is refused, never zero.
#include <algorithm>

#include "autodiff/differentiate.h"
#include "autodiff/history.h"
#include "base/error.h"
#include "frontend/eager.h"
#include "frontend/variable_values.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/constant.h"

namespace aloft {

namespace {

// Below these a sweep is not worth its time.
constexpr std::size_t kFewBytes = std::size_t{32} << 20;
constexpr std::uint32_t kFewNodes = 4096;

bool is_trainable(const Variable& v) { return v.cls == StateClass::Parameter && v.requires_grad; }

UserError unrecorded(const std::string& saw) {
  return UserError("E0321", "a gradient was asked for through what is not recorded")
      .saw(saw)
      .need("a tensor computed from the parameters since they were last updated with it");
}

constexpr const char* kUsed =
    "a step's backward is the last use of what it passes: compute all losses before it, or "
    "detach() what is carried over from an earlier step";

}  // namespace

// The target has a place on the tape that is not a leaf's.
void EagerEmitter::check_target(const Tensor& target) const {
  const EagerCell& c = cell(target);
  const bool is_leaf = is_recorded(c) && tape_.node(c.id.node).op == Name("input");
  if (is_recorded(c) && !is_leaf) return;
  if (c.lost != Lost::Nothing)
    throw unrecorded("a " + c.type.str() +
                     " whose history an earlier backward() or step used, or a dropped tape held")
        .advice(kUsed);
  throw unrecorded("a " + c.type.str() +
                   " from host memory, from a compiled program or computed under NoGrad")
      .advice("compute it from the parameters outside NoGrad, in eager mode");
}

// No way of the gradient ends where a history was dropped that could hold what is asked for: a
// parameter, or a tensor that is as old as `oldest`.
void EagerEmitter::check_history(const History& history, std::uint64_t oldest,
                                 bool through_parameters) const {
  for (std::uint32_t n : tape_.inputs()) {
    const EagerCell& leaf = *values_.at({n, 0});
    if (!history.holds(n) || leaf.lost == Lost::Nothing) continue;
    const bool hides_parameter = through_parameters && leaf.lost == Lost::Parameters;
    if (!hides_parameter && oldest > leaf.born) continue;
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
  Where w = where;
  w.phase = Phase::Backward;
  w.pass = "differentiate";
  Scope scope(w);
  const auto through = [&](const Tensor& t) {
    const Tensor now = current(t);
    return Tensor(&emitter, now.id(), now.held());
  };
  const Tensor to = through(target);
  const Tensor from = broadcast_like(cast(through(seed), to.dtype()), to);
  std::vector<Tensor> of;
  of.reserve(wrt.size());
  for (const Tensor& t : wrt) of.push_back(through(t));
  return differentiate(tape_, emitter, to, from, of);
}

std::vector<Tensor> EagerEmitter::gradients(const Tensor& target, const Tensor& seed,
                                            std::span<const Tensor> wrt, const Where& where) {
  std::uint64_t oldest = UINT64_MAX;
  bool through_parameters = false, is_own = false;
  for (const Tensor& t : wrt) {
    const EagerCell& c = cell(t);
    is_own = is_own || t.held() == target.held();
    if (c.lost != Lost::Nothing && !is_recorded(c)) check_target(t);
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
  for (std::size_t i = 0; i < result.size(); ++i)
    if (!result[i].is_defined()) result[i] = full(of[i].shape(), 0.0, of[i].dtype());
  return result;
}

std::vector<Tensor> EagerEmitter::variable_gradients(const Tensor& target, const Tensor& seed,
                                                     std::span<const VariablePtr> variables,
                                                     const Where& where) {
  check_target(target);
  const History history(tape_, cell(target).id);
  check_history(history, UINT64_MAX, true);
  std::map<const Variable*, std::vector<std::uint32_t>> values;  // nodes, oldest first
  for (std::uint32_t n : tape_.states())
    if (history.holds(n)) values[values_.at({n, 0})->variable.get()].push_back(n);
  std::vector<Tensor> wrt;
  for (const VariablePtr& v : variables)
    for (std::uint32_t n : values[v.get()]) wrt.push_back(handle({n, 0}));
  if (wrt.empty()) throw depends_on_none(cell(target).type);
  std::vector<Tensor> parts = differentiate_tape(target, seed, wrt, where);

  std::vector<Tensor> results;
  {
    const NoGrad no_grad;
    EmitterScope emitter_scope(outer_ ? static_cast<Emitter&>(*outer_) : *this);
    Scope scope(where_values_are_added(where));
    auto part = parts.begin();
    for (const VariablePtr& v : variables) {
      const auto& nodes = values[v.get()];
      const auto end = part + static_cast<std::ptrdiff_t>(nodes.size());
      CellPtr c = copy_of(cell(sum_of_values({part, end}, v->type)));
      part = end;
      c->lost = Lost::Parameters;
      for (std::uint32_t n : nodes)
        c->first_use =
            c->first_use < 0 ? history.first_use(n) : std::min(c->first_use, history.first_use(n));
      leave_unrecorded(*c);
      results.push_back(wrap(c));
    }
  }
  parts.clear();
  forget_used(history, wrt);
  return results;
}

void EagerEmitter::backward(const Tensor& loss) {
  check_target(loss);
  const History history(tape_, cell(loss).id);
  std::vector<VariablePtr> variables;
  for (std::uint32_t n : tape_.states()) {
    const VariablePtr& v = values_.at({n, 0})->variable;
    if (history.holds(n) && is_trainable(*v) &&
        std::find(variables.begin(), variables.end(), v) == variables.end())
      variables.push_back(v);
  }
  Where where = current_where();
  EmitterScope scope(*this);
  const std::vector<Tensor> grads =
      variable_gradients(loss, full(Shape{}, 1.0, DType::F32), variables, where);
  gradients_.clear();
  for (std::size_t i = 0; i < variables.size(); ++i) gradients_[variables[i]] = grads[i];
}

Tensor EagerEmitter::gradient_of(const VariablePtr& variable) const {
  const auto it = gradients_.find(variable);
  return it == gradients_.end() ? Tensor() : it->second;
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

void EagerEmitter::sweep_if_grown() {
  if (tape_bytes_ < sweep_at_bytes_ && tape_.capacity() < sweep_at_nodes_) return;
  sweep();
  sweep_at_bytes_ = std::max(kFewBytes, 2 * tape_bytes_);
  sweep_at_nodes_ = std::max(kFewNodes, 2 * tape_.capacity());
}

// Drops what nobody can differentiate any more: evaluation without NoGrad must not hold the values
// of past batches. No bit of any gradient changes by it.
void EagerEmitter::sweep() {
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

// After a step's gradients with respect to `wrt`: keeps what those tensors were computed from that
// somebody holds, that depend on a parameter, and that do not lie on the ways just used.
void EagerEmitter::forget_used(const History& used, const std::vector<Tensor>& wrt) {
  std::vector<bool> spent(tape_.capacity(), false);
  for (const Tensor& t : wrt) spent[cell(t).id.node] = true;
  for (std::uint32_t n = 0; n < tape_.capacity(); ++n)
    if (used.holds(n) && passes_gradient(tape_.node(n)))
      for (ValueId v : tape_.node(n).in) spent[n] = spent[n] || spent[v.node];
  std::vector<bool> reaches_parameter;
  ways_back(reaches_parameter);

  const auto own = own_references();
  const auto is_result = [&](ValueId id) { return !tape_.node(id.node).in.empty(); };
  std::vector<bool> kept(tape_.capacity(), false);
  std::vector<CellPtr> released;
  for (const auto& [id, c] : values_) {
    if (c.use_count() <= own.at(c.get()) || !is_result(id)) continue;
    if (spent[id.node])
      released.push_back(c);
    else if (reaches_parameter[id.node])
      kept[id.node] = true;
  }
  close_over_operands(kept);
  // Where another tensor needs such a value, the tape has it in a cell of its own.
  for (const CellPtr& c : released) {
    if (!kept[c->id.node]) continue;
    CellPtr mine = copy_of(*c);
    mine->id = c->id;
    mine->generation = generation_;
    values_[c->id] = std::move(mine);
    c->generation = 0;
    c->lost = Lost::Parameters;
  }
  released.clear();
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
    const CellPtr& c = entry.second;
    return c->variable.use_count() == 1 && (!is_recorded(*c) || !kept[c->id.node]);
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
    for (std::uint32_t i = 0; i < node.out.size(); ++i) {
      const CellPtr& c = cells.at({n, i});
      renamed[{n, i}] = c->id = values_.emplace(ValueId{now, i}, c).first->first;
      tape_bytes_ += c->type.max_bytes();
    }
  }
  if (outer_) outer_->rename_values(renamed);
}

void EagerEmitter::reset() {
  tape_ = Graph();
  tape_.name = "tape";
  values_.clear();
  leaves_ = 0;
  tape_bytes_ = 0;
  ++generation_;
  if (outer_) outer_->forget_values();
}

void EagerEmitter::clear_tape() {
  occurrences_.clear();
  if (tape_.capacity() > 0) keep_only(std::vector<bool>(tape_.capacity(), false));
  states_.clear();
}

}  // namespace aloft
