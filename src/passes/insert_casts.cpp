// insert-casts: gives every node the element types that its precision policy decides.
//
//   %2 = linear(%0, %1) : f32[8,4] policy="O1:bf16"
//     ->
//   %2 = cast(%0) {to=bf16} : bf16[8,16] pass="insert-casts" reason="products are safe ..."
//   %3 = cast(%1) {to=bf16} : bf16[4,16] ...
//   %4 = linear(%2, %3) : bf16[8,4]
//
// The traced graph is replayed node by node through a CastingEmitter into a new graph: types are
// inferred anew behind each cast, a value is cast once per type. Running it twice changes nothing.
#include <algorithm>

#include "graph/graph.h"
#include "ops/cast.h"
#include "ops/graph_emitter.h"
#include "passes/casting_emitter.h"
#include "passes/pass.h"

namespace aloft {
namespace {

// Whether two graphs have the same nodes and types in the same order, which is all that can differ.
bool equal_types(const Graph& a, const Graph& b) {
  const auto same = [&](std::uint32_t x, std::uint32_t y) {
    return a.node(x).op == b.node(y).op && a.node(x).attrs == b.node(y).attrs &&
           a.node(x).form == b.node(y).form && a.node(x).out == b.node(y).out;
  };
  return std::equal(a.order().begin(), a.order().end(), b.order().begin(), b.order().end(), same);
}

Where where_of_update(const Graph& graph, const StateUpdate& update) {
  Where w = graph.node(update.value.node).where;
  w.pass = "insert-casts";
  w.reason = "a variable keeps its type";
  return w;
}

PassReport run(Graph& graph, const PassContext& context) {
  Graph result;
  result.name = graph.name;
  GraphEmitter plain(result);
  CastingEmitter casting(plain, context.capability, taker(context));
  casting.record_decisions(context.decisions);
  EmitterScope scope(casting);
  std::map<ValueId, Tensor> replayed;
  for (std::uint32_t n : graph.order()) {
    const Node& node = graph.node(n);
    std::vector<Tensor> in, out;
    in.reserve(node.in.size());
    for (ValueId v : node.in) in.push_back(replayed.at(v));
    if (find_op(node.op)) {
      out = casting.emit({node.op, node.attrs, node.form}, in, node.where);
    } else {
      std::vector<ValueId> ids;
      ids.reserve(in.size());
      std::vector<TensorType> types = node.out;
      for (const Tensor& t : in) ids.push_back(t.id());
      Attrs attrs = node.attrs;
      if (const auto* stored = attrs.find("stored")) {
        types[0].dtype = std::get<DType>(*stored);
        attrs.erase("stored");
      }
      if (node.op == Name("gradients"))  // each has its parameter's type
        for (std::size_t i = 0; i < types.size(); ++i) types[i] = in[i + 2].type();
      const std::uint32_t copy = result.add(node.op, attrs, ids, types, node.where);
      for (std::uint32_t i = 0; i < types.size(); ++i) out.push_back(casting.handle({copy, i}));
      const auto* cls = node.attrs.find("class");
      if (cls && std::get<std::string>(*cls) == name_of(StateClass::Parameter))
        casting.note_parameter(out[0], std::get<std::string>(*node.attrs.find("name")));
    }
    for (std::uint32_t i = 0; i < out.size(); ++i) replayed[{n, i}] = out[i];
  }
  for (const GraphOutput& o : graph.outputs())
    result.set_output(o.name, replayed.at(o.value).id(), o.kind);
  for (Name pattern : graph.tap_patterns()) result.ask_tap(pattern);
  for (const Policy& policy : graph.measured()) result.measure(policy);
  for (Name tap : graph.lost_taps()) result.lose_tap(tap);
  for (const StateUpdate& u : graph.updates()) {
    // A variable keeps its type whatever the policy makes of its new value.
    Tensor value = replayed.at(u.value);
    const DType wanted = result.type(*result.find_state(u.id)).dtype;
    if (value.dtype() != wanted)
      value = plain.emit({"cast", to_attrs(CastAttrs{wanted})}, std::span(&value, 1),
                         where_of_update(graph, u))[0];
    result.set_update(u.id, value.id());
  }
  const bool changed = !equal_types(result, graph);
  graph = std::move(result);
  return {changed};
}

}  // namespace

const Pass insert_casts{"insert-casts", "element types as the precision policy decides",
                        Form::Traced,   Form::Cast,
                        false,          run};

}  // namespace aloft
