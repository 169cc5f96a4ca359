#include "ops/graph_emitter.h"

#include "base/error.h"
#include "ops/op.h"

namespace aloft {

std::vector<Tensor> GraphEmitter::emit(const OpCall& call, std::span<const Tensor> in,
                                       const Where& where) {
  const OpDef& def = op_named(call.op);
  std::vector<ValueId> ids;
  std::vector<TensorType> types;
  for (const Tensor& t : in) {
    ids.push_back(t.id());
    types.push_back(graph_.type(t.id()));
  }
  std::vector<TensorType> out = infer_types(def, call.attrs, types, where);
  const auto count = static_cast<std::uint32_t>(out.size());
  const std::uint32_t n =
      graph_.add(call.op, call.attrs, std::move(ids), std::move(out), where, before_);
  graph_.set_form(n, call.form);
  std::vector<Tensor> results;
  for (std::uint32_t i = 0; i < count; ++i) results.push_back(handle({n, i}));
  return results;
}

namespace {
[[noreturn]] void no_variables() { throw InternalError("only a trace has variables"); }
}  // namespace

Tensor GraphEmitter::state(const VariablePtr&) { no_variables(); }
void GraphEmitter::update(const VariablePtr&, const Tensor&) { no_variables(); }
std::vector<Tensor> GraphEmitter::variable_gradients(const Tensor&, const Tensor&,
                                                     std::span<const VariablePtr>, const Where&) {
  no_variables();
}
std::int64_t GraphEmitter::first_use(const Tensor&) const { return -1; }
void GraphEmitter::watch(const Tensor&, std::function<void(std::int32_t)>) { no_variables(); }

std::int64_t random_key_of(const Where& where, Name op, int occurrence) {
  Node probe;
  probe.op = op;
  probe.where = where;
  probe.occurrence = occurrence;
  // Positive, and exact in a double, so that the host's evaluation sees the same number.
  return static_cast<std::int64_t>(identity_hash(probe.identity()) >> 12);
}

std::int64_t GraphEmitter::random_key(Name op, const Tensor&) {
  const Where& w = current_where();
  return random_key_of(w, op, graph_.next_occurrence(w, op));
}

std::vector<Tensor> GraphEmitter::gradients(const Tensor& target, const Tensor& seed,
                                            std::span<const Tensor> wrt, const Where& where) {
  return request(target, seed, wrt, where, true);
}

std::vector<Tensor> GraphEmitter::request(const Tensor& target, const Tensor& seed,
                                          std::span<const Tensor> wrt, const Where& where,
                                          bool exact) {
  std::vector<ValueId> in{target.id(), seed.id()};
  std::vector<TensorType> out;
  for (const Tensor& t : wrt) {
    in.push_back(t.id());
    out.push_back(graph_.type(t.id()));
  }
  Attrs attrs;
  if (exact) attrs.set(kExactAttr, true);
  const std::uint32_t n =
      graph_.add("gradients", std::move(attrs), std::move(in), std::move(out), where, before_);
  std::vector<Tensor> results;
  for (std::uint32_t i = 0; i < wrt.size(); ++i) results.push_back(handle({n, i}));
  return results;
}

std::vector<double> GraphEmitter::read(const Tensor& t) const { no_value_yet(t); }
std::vector<std::int64_t> GraphEmitter::read_integers(const Tensor& t) const { no_value_yet(t); }

void GraphEmitter::no_value_yet(const Tensor& t) const {
  throw UserError("E0301", "a tensor's value was asked for while the function is being traced")
      .at(place_of(graph_.node(t.id().node).where))
      .saw("a " + type_of(t).str() + " that has no value yet")
      .need("control flow that does not depend on a tensor's value")
      .advice(
          "use where(condition, a, b), return the tensor and read it after the step, or run "
          "eagerly");
}

void GraphEmitter::backward(const Tensor& loss) {
  throw UserError("E0305", "backward() was called while the function is being traced")
      .at(place_of(graph_.node(loss.id().node).where))
      .advice(
          "return minimize(loss, optimizer), or scaled_gradients(loss, optimizer), from the "
          "function");
}

void inline_body(Graph& graph, std::uint32_t n) {
  const Node node = graph.node(n);
  const OpDef& def = op_named(node.op);
  ensure(def.body != nullptr, "an inlined op has a body");
  GraphEmitter emitter(graph);
  emitter.insert_before(n);
  EmitterScope emitter_scope(emitter);
  Where where = node.where;
  where.pass = "expand-bodies";
  where.path = node.where.path.str() + "/" + node.op.str();
  where.reason = "body of " + node.op.str();
  Scope scope(where);
  std::vector<Tensor> in;
  for (ValueId v : node.in) in.push_back(emitter.handle(v));
  const std::vector<Tensor> out = def.body(node.attrs, in);
  ensure(out.size() == node.out.size(), "a body has as many results as its op: " + node.op.str());
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    ensure(graph.type(out[i].id()) == node.out[i],
           "a body's results have its op's types: " + node.op.str());
    graph.replace_uses({n, i}, out[i].id());
  }
  graph.erase(n);
}

}  // namespace aloft
