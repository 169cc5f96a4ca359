// cse: two nodes with the same op, attributes, form and operands become one.
//
//   %2 = cast(%0) {to=bf16}       %2 = cast(%0) {to=bf16}
//   %3 = cast(%0) {to=bf16}   ->  %4 = add(%2, %2)
//   %4 = add(%2, %3)
//
// Ops that draw random numbers carry their key as an attribute, so equal nodes draw equal numbers.
// Nodes of two phases stay two: one for both would keep a forward value alive into the backward
// pass, for the sake of nodes that are cheap to compute again.
#include <unordered_map>

#include "ops/op.h"
#include "passes/pass.h"

namespace aloft {
namespace {

std::string key_of(const Node& node) {
  std::string key = node.op.str() + node.attrs.str();
  key += std::string(name_of(node.form)) + "(";
  for (ValueId v : node.in) key += std::to_string(v.node) + "." + std::to_string(v.index) + ",";
  return key + std::string(name_of(node.where.phase));
}

PassReport run(Graph& graph, const PassContext&) {
  PassReport report;
  std::unordered_map<std::string, std::uint32_t> seen;
  for (std::uint32_t n : std::vector(graph.order())) {
    const Node& node = graph.node(n);
    if (!find_op(node.op)) continue;
    const auto [it, is_new] = seen.emplace(key_of(node), n);
    if (is_new || graph.node(it->second).out != node.out) continue;
    for (std::uint32_t i = 0; i < node.out.size(); ++i) graph.replace_uses({n, i}, {it->second, i});
    graph.erase(n);
    report.changed = true;
  }
  return report;
}

}  // namespace

const Pass cse{"cse", "equal nodes become one", Form::Cast, std::nullopt, true, run};

}  // namespace aloft
