#include "autodiff/history.h"

#include "ops/op.h"

namespace aloft {

bool passes_gradient(const Node& node) {
  const OpDef* op = find_op(node.op);
  if (op != nullptr) return op->gradient != OpDef::Gradient::None;
  return node.op == Name("gradients");
}

History::History(const Graph& graph, ValueId target) : held_(graph.capacity(), false) {
  const auto is_cast = [&](std::uint32_t n) { return graph.node(n).op == Name("cast"); };
  held_[target.node] = true;
  const std::vector<std::uint32_t>& order = graph.order();
  for (auto n = order.rbegin(); n != order.rend(); ++n) {
    if (!held_[*n] || !passes_gradient(graph.node(*n))) continue;
    for (ValueId v : graph.node(*n).in)
      if (is_float(graph.type(v).dtype)) held_[v.node] = true;
  }
  std::int64_t place = 0;
  for (std::uint32_t n : order) {
    if (!held_[n] || is_cast(n) || !passes_gradient(graph.node(n))) continue;
    for (ValueId v : graph.node(n).in) {
      while (is_cast(v.node)) v = graph.node(v.node).in[0];
      first_use_.emplace(v.node, place++);
    }
  }
}

std::int64_t History::first_use(std::uint32_t n) const {
  const auto it = first_use_.find(n);
  return it == first_use_.end() ? -1 : it->second;
}

}  // namespace aloft
