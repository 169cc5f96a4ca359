// differentiate: replaces every `gradients` node by the backward nodes that compute it, emitted
// before it and through the precision decision once more, with phase backward (autodiff/ has the
// sweep itself and an example).
#include "autodiff/differentiate.h"

#include "base/error.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/graph_emitter.h"
#include "passes/casting_emitter.h"
#include "passes/pass.h"

namespace aloft {
namespace {

void note_parameters(const Graph& graph, CastingEmitter& casting) {
  for (std::uint32_t n : graph.states()) {
    const Node& node = graph.node(n);
    if (std::get<std::string>(*node.attrs.find("class")) == name_of(StateClass::Parameter))
      casting.note_parameter({n, 0}, std::get<std::string>(*node.attrs.find("name")));
  }
}

void expand(Graph& graph, std::uint32_t n, const PassContext& context) {
  const Node node = graph.node(n);
  GraphEmitter plain(graph);
  plain.insert_before(n);
  CastingEmitter casting(plain, context.capability);
  casting.record_decisions(context.decisions);
  note_parameters(graph, casting);
  EmitterScope emitter_scope(casting);
  Where where = node.where;
  where.phase = Phase::Backward;
  where.pass = "differentiate";
  Scope scope(where);
  const Tensor target = casting.handle(node.in[0]);
  const Tensor seed =
      broadcast_like(cast(casting.handle(node.in[1]), target.dtype()), target);
  std::vector<Tensor> wrt;
  for (std::size_t i = 2; i < node.in.size(); ++i) wrt.push_back(casting.handle(node.in[i]));
  const std::vector<Tensor> gradients = differentiate(graph, casting, target, seed, wrt);
  for (std::uint32_t i = 0; i < gradients.size(); ++i) {
    const Tensor g = gradients[i].is_defined()
                         ? gradients[i]
                         : full(wrt[i].shape(), 0.0, wrt[i].dtype());
    graph.replace_uses({n, i}, g.id());
  }
  graph.erase(n);
}

PassReport run(Graph& graph, const PassContext& context) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t n : graph.order())
    if (graph.node(n).op == Name("gradients")) found.push_back(n);
  // In order: a later gradient may go through an earlier one.
  for (std::uint32_t n : found) expand(graph, n, context);
  return {!found.empty()};
}

}  // namespace

const Pass differentiate_pass{"differentiate", "backward nodes for every requested gradient",
                              Form::Cast, Form::Differentiated, true, run};

}  // namespace aloft
