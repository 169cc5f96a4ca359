#include "frontend/tracing.h"

#include <algorithm>

#include "autodiff/differentiate.h"
#include "autodiff/history.h"
#include "base/error.h"
#include "frontend/ended_trace.h"
#include "frontend/hooks.h"
#include "frontend/loss_scale_uses.h"
#include "frontend/premises.h"
#include "frontend/random.h"
#include "frontend/taken_calls.h"
#include "frontend/variable_values.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "runtime/current_device.h"
#include "types/bound_watch.h"

namespace aloft {

Name StateTable::id_of(const VariablePtr& variable) {
  if (const auto known = ids_.find(variable); known != ids_.end()) return known->second;
  Name id = variable->name;
  for (int k = 2; by_id_.contains(id); ++k) id = variable->name.str() + "#" + std::to_string(k);
  by_id_[id] = variable;
  ids_[variable] = id;
  return id;
}

void TraceEmitter::check_own(const Tensor& t) const {
  const bool is_own = !t.held().owner_before(front_) && !front_.owner_before(t.held());
  if (!is_own) refuse_foreign(t);
}

TensorType TraceEmitter::type_of(const Tensor& t) const {
  check_own(t);
  return GraphEmitter::type_of(t);
}

Tensor TraceEmitter::current(const Tensor& t) {
  check_own(t);
  return t;
}

// What was computed under NoGrad has no gradient: where it is used with gradients on, a copy that
// none passes stands for it.
std::vector<Tensor> TraceEmitter::emit(const OpCall& call, std::span<const Tensor> in,
                                       const Where& where) {
  const BoundWatch inference(nullptr);
  std::vector<Tensor> operands;
  operands.reserve(in.size());
  for (const Tensor& t : in) operands.push_back(grad_enabled() ? handle(detached(t.id())) : t);
  if (draws_) take_draw_state(call.op, operands);
  std::vector<Tensor> results = checked_emit(call, operands, where);
  if (!grad_enabled())
    for (const Tensor& t : results)
      if (is_float(t.dtype())) detached_[t.id()] = {};
  return results;
}

std::vector<Tensor> TraceEmitter::checked_emit(const OpCall& call, std::span<const Tensor> in,
                                               const Where& where) {
  try {
    return GraphEmitter::emit(call, in, where);
  } catch (UserError& e) {
    std::vector<ValueId> operands;
    for (const Tensor& t : in) operands.push_back(t.id());
    add_origins(e, graph(), operands, titles_);
    throw;
  }
}

ValueId TraceEmitter::detached(ValueId v) {
  const auto it = detached_.find(v);
  if (it == detached_.end()) return v;
  if (!it->second.is_valid()) {
    const Tensor from = handle(v);
    const Where where = graph().node(v.node).where;  // a copy: nodes move where one is added
    it->second = GraphEmitter::emit({"detach", {}}, {&from, 1}, where)[0].id();
  }
  return it->second;
}

TraceEmitter::Values& TraceEmitter::values_of(const VariablePtr& variable) {
  Values& values = values_[variable];
  if (values.read.empty()) {
    values.read.push_back(graph().add_state(*variable, variables_.id_of(variable)));
    read_premise(variable, variable->type.dtype);  // amp::initialize narrows parameters
    // Changed later, it is refused as the program is made anew (exec/plan_memory.cpp).
    if (current_device().features().spaces.size() > 1) read_premise(variable, variable->home.space);
  }
  return values;
}

Tensor TraceEmitter::state(const VariablePtr& variable) {
  if (!variable) throw no_variable("the value of no variable is asked for");
  Values& values = values_of(variable);
  if (values.updated.is_valid()) {
    // A leaf: no gradient passes from a variable's new value to what it was computed from.
    const Tensor from = handle(values.updated);
    values.read.push_back(GraphEmitter::emit({"detach", {}}, {&from, 1}, current_where())[0].id());
    values.updated = {};
  }
  return handle(values.read.back());
}

void TraceEmitter::update(const VariablePtr& variable, const Tensor& value) {
  if (!variable) throw no_variable("a value is given to no variable");
  const BoundWatch inference(nullptr);
  if (const TensorType type = type_of(value); type != variable->type)
    throw changes_type(*variable, type);
  values_of(variable).updated = value.id();
  graph().set_update(variables_.id_of(variable), value.id());
  if (variable != random_state()) return;
  occurrences_.clear();
  if (draws_)
    for (Draw& d : *draws_) d.before_update = true;
}

std::int64_t TraceEmitter::random_key(Name op, const Tensor& rng) {
  const Where& w = current_where();
  const std::vector<ValueId>& states = values_[random_state()].read;
  if (std::find(states.begin(), states.end(), rng.id()) == states.end())
    return random_key_of(w, op, 0);
  const int occurrence = occurrences_[{w.path, op}]++;
  const std::int64_t key = random_key_of(w, op, occurrence);
  if (draws_)
    draws_->push_back({.where = w,
                       .op = op,
                       .occurrence = occurrence,
                       .key = key,
                       .behind_update = values_[random_state()].updated.is_valid() ||
                                        values_[random_state()].read.size() > 1});
  return key;
}

// The op that the last key was asked for: where it would read the random state as it is when the
// program begins, it reads an input.
void TraceEmitter::take_draw_state(Name op, std::vector<Tensor>& operands) {
  if (draws_->empty()) return;
  Draw& draw = draws_->back();
  if (draw.op != op || draw.behind_update || !draw.input.empty()) return;
  const std::vector<ValueId>& read = values_[random_state()].read;
  for (Tensor& t : operands)
    if (!read.empty() && t.id() == read[0]) {
      draw.input = "draw" + std::to_string(draws_->size() - 1);
      t = handle(graph().add_input(draw.input, random_state()->type));
    }
}

bool TraceEmitter::uses_random_state() {
  const auto it = values_.find(random_state());
  if (it == values_.end() || it->second.read.empty()) return false;
  const Values& v = it->second;
  return v.updated.is_valid() || v.read.size() > 1 || graph().use_count(v.read[0]) > 0;
}

void TraceEmitter::check_target(const Tensor& target) const {
  check_own(target);
  if (Premises* p = premises_of_trace()) p->found_gradients();
  if (detached_.contains(target.id()))
    throw UserError("E0321", "a gradient was asked for through what is not recorded")
        .saw("a " + target.type().str() + " computed under NoGrad")
        .need("a tensor computed outside NoGrad");
}

std::vector<Tensor> TraceEmitter::gradients(const Tensor& target, const Tensor& seed,
                                            std::span<const Tensor> wrt, const Where& where) {
  check_target(target);
  check_own(seed);
  std::vector<Tensor> of;  // as the ops that used them saw them
  for (const Tensor& t : wrt) of.push_back(handle(detached(current(t).id())));
  const auto hooked = hooked_gradients(target, seed, of, where);
  if (!hooked) return request(target, seed, of, where, true);
  std::vector<Tensor> results;
  EmitterScope emitter_scope(*this);
  Scope scope(where_of_gradients(where));
  for (std::size_t i = 0; i < of.size(); ++i) {
    const TensorType type = type_of(of[i]);
    const Tensor& g = (*hooked)[i];
    results.push_back(g.is_defined() ? cast(g, type.dtype) : full(type.shape, 0.0, type.dtype));
  }
  return results;
}

std::optional<std::vector<Tensor>> TraceEmitter::hooked_gradients(const Tensor& target,
                                                                  const Tensor& seed,
                                                                  std::span<const Tensor> wrt,
                                                                  const Where& where) {
  Lookout lookout;
  for (const auto& [id, notes] : all_notes())
    if (!notes.hooks.empty()) lookout.values.insert(id);
  if (lookout.values.empty()) return std::nullopt;
  const History history(graph(), target.id());
  for (std::uint32_t n : graph().order())
    if (history.holds(n) && graph().node(n).op == Name("gradients"))
      throw UserError("E0334", "a gradient of a gradient meets a hook that came too late")
          .saw("hooks that were registered behind the first gradient of the traced function")
          .need("hooks before the first gradient, where it is differentiated again");
  lookout.see = [this](ValueId v, const Tensor& gradient) {
    return hooks::run_on_gradient(notes(handle(v)).hooks, gradient);
  };
  Emitter& front = *front_;
  EmitterScope emitter_scope(front);
  const WithGrad with_grad;
  Scope scope(where_of_gradients(where));
  const Tensor to = front.handle(target.id());
  const Tensor from = broadcast_like(cast(front.handle(seed.id()), to.dtype()), to);
  std::vector<Tensor> of, results;
  for (const Tensor& t : wrt) of.push_back(front.handle(t.id()));
  for (const Tensor& g : differentiate(graph(), front, to, from, of, lookout))
    results.push_back(g.is_defined() ? handle(g.id()) : Tensor());
  return results;
}

// As a user's tensor, among ops of the user's.
Tensor TraceEmitter::seen_by_hooks(const VariablePtr& variable, const Tensor& gradient) {
  EmitterScope emitter_scope(*front_);
  const NoGrad no_grad;
  return handle(hooks::run_on_gradient(variable, front_->handle(gradient.id())).id());
}

std::vector<Tensor> TraceEmitter::variable_gradients(const Tensor& target, const Tensor& seed,
                                                     std::span<const VariablePtr> variables,
                                                     const Where& where) {
  check_target(target);
  check_own(seed);
  const History history(graph(), target.id());
  if (WholeStep::is_taken())
    for (const auto& [variable, its] : values_)
      for (ValueId id : its.read)
        if (history.holds(id.node) && is_loss_scale(*variable)) throw is_scaled_already();
  if (LossScalesMet::is_asked()) {
    std::map<std::uint32_t, VariablePtr> scales;
    for (const auto& [variable, its] : values_)
      if (is_loss_scale(*variable))
        for (ValueId id : its.read) scales[id.node] = variable;
    LossScalesMet::tell(loss_scales_on(graph(), history, target.id(), scales));
  }
  std::vector<std::vector<Tensor>> values;  // of each variable, those that the target depends on
  std::vector<Tensor> wrt;
  bool depends = false;
  for (const VariablePtr& v : variables) {
    values.emplace_back();
    for (ValueId id : values_of(v).read)
      if (history.holds(id.node)) values.back().push_back(handle(id));
    depends = depends || !values.back().empty();
    if (values.back().empty()) values.back().push_back(state(v));  // zeros
    wrt.insert(wrt.end(), values.back().begin(), values.back().end());
  }
  if (!depends) throw depends_on_none(target.type());
  const auto hooked = hooked_gradients(target, seed, wrt, where);
  const std::vector<Tensor> parts = hooked ? *hooked : request(target, seed, wrt, where, false);
  hooks::ask_parameters();

  std::vector<Tensor> results;
  Scope scope(where_values_are_added(where));
  EmitterScope emitter_scope(*this);
  auto part = parts.begin();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto end = part + static_cast<std::ptrdiff_t>(values[i].size());
    results.push_back(seen_by_hooks(variables[i], sum_of_values({part, end}, variables[i]->type)));
    part = end;
    std::int64_t& first = first_uses_.emplace(results.back().id(), -1).first->second;
    for (const Tensor& t : values[i])
      if (const std::int64_t use = history.first_use(t.id().node); use >= 0)
        first = first < 0 ? use : std::min(first, use);
  }
  return results;
}

Lost TraceEmitter::behind(const Tensor& t) {
  if (detached_.contains(t.id()) || !is_float(t.dtype())) return Lost::Nothing;
  const History history(graph(), t.id());
  for (const auto& [variable, values] : values_) {
    if (variable->cls != StateClass::Parameter) continue;
    for (ValueId v : values.read)
      if (history.holds(v.node) && read_premise(variable, variable->requires_grad))
        return Lost::Parameters;
  }
  for (std::uint32_t n : graph().inputs())
    if (history.holds(n)) return Lost::Values;
  return Lost::Nothing;
}

std::int64_t TraceEmitter::first_use(const Tensor& gradient) const {
  const auto it = first_uses_.find(gradient.id());
  return it == first_uses_.end() ? -1 : it->second;
}

void TraceEmitter::watch(const Tensor& value, std::function<void(std::int32_t)> look) {
  ensure(type_of(value) == TensorType{DType::I32, Shape{}}, "what is watched is an i32[]");
  watches_.push_back({value.id(), std::move(look)});
}

namespace {
// The emitter that a traced function meets, while it is traced.
class Front {
 public:
  Front()
      : emitter_(std::make_shared<CastingEmitter>(
            ended_trace(), current_device().features().capability, taker(current_device()))) {}
  ~Front() {
    emitter_->record_decisions(nullptr);
    emitter_->pass_on_to(ended_trace());
  }
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;
  const std::shared_ptr<CastingEmitter>& emitter() const { return emitter_; }

 private:
  std::shared_ptr<CastingEmitter> emitter_;
};
}  // namespace

TracedProgram trace(const std::string& name, const std::vector<InputSpec>& inputs,
                    const Traceable& function, StateTable& variables,
                    std::vector<DecisionRecord>* decisions, std::vector<Draw>* draws) {
  TracedProgram result;
  const HostPartScope host(&result.host);
  const TracedLossScales loss_scales;
  result.graph.name = name;
  const Front front;
  CastingEmitter& emitter = *front.emitter();
  TraceEmitter recorder(result.graph, variables, front.emitter(), draws);
  emitter.pass_on_to(recorder);
  emitter.record_decisions(decisions);
  EmitterScope scope(emitter);
  std::vector<Tensor> operands;
  operands.reserve(inputs.size());
  for (const InputSpec& i : inputs) {
    operands.push_back(emitter.handle(result.graph.add_input(i.name, i.type)));
    recorder.give_title(operands.back().id(), i.title.empty() ? "input " + i.name : i.title);
    emitter.notes(operands.back()).is_wide = i.is_wide;
  }
  const auto outputs = [&] {
    const BoundWatch watch(&result.reads_bound);
    return function(operands);
  }();
  for (const auto& [output, tensor] : outputs) {
    if (!tensor.is_defined())
      throw UserError("E0302", "result '" + output + "' was never assigned")
          .need("a tensor that the traced function has computed");
    if (tensor.emitter() != &emitter)
      throw UserError("E0304", "result '" + output + "' was not computed by the traced function")
          .need("tensors that depend on its arguments or on parameters");
    result.graph.set_output(output, tensor.id());
    result.outputs[output] = {recorder.behind(tensor), emitter.notes(tensor).is_wide};
  }
  if (Premises* p = premises_of_trace(); p && recorder.uses_random_state()) p->found_random_state();
  for (const Watch& w : recorder.watches()) {
    // Where the function returns the value, that is looked at.
    std::string at;
    for (const GraphOutput& o : result.graph.outputs())
      if (o.value == w.value) at = o.name.str();
    if (at.empty()) {
      at = "watched:" + std::to_string(result.watches.size());
      result.graph.set_output(at, w.value, OutputKind::Watch);
    }
    result.watches.emplace_back(at, w.look);
  }
  return result;
}

}  // namespace aloft
