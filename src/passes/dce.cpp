// dce: removes nodes that no output and no update depends on. Inputs and variables stay: they are
// the program's signature. A tap keeps nothing: what is computed for nobody else is not computed.
#include "passes/pass.h"

namespace aloft {

bool remove_dead(Graph& graph) {
  bool changed = false;
  const std::vector<std::uint32_t> order = graph.order();
  std::vector<bool> live(graph.capacity(), false);
  for (const GraphOutput& o : graph.outputs())
    if (o.kind != OutputKind::Tap) live[o.value.node] = true;
  for (const StateUpdate& u : graph.updates()) live[u.value.node] = true;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& node = graph.node(*it);
    if (node.op == Name("input") || node.op == Name("state")) continue;
    if (live[*it]) {
      for (ValueId v : node.in) live[v.node] = true;
    } else {
      graph.erase(*it);
      changed = true;
    }
  }
  return changed;
}

namespace {
PassReport run(Graph& graph, const PassContext&) { return {remove_dead(graph)}; }
}  // namespace

const Pass dce{"dce", "removes what nothing reads", Form::Traced, std::nullopt, true, run};

}  // namespace aloft
