#include "frontend/operand_origins.h"

#include <set>
#include <vector>

namespace aloft {
namespace {

// The inputs that a value is computed from, by their nodes.
std::set<std::uint32_t> inputs_behind(const Graph& graph, std::uint32_t node,
                                      const InputTitles& titles) {
  std::set<std::uint32_t> seen{node}, found;
  std::vector<std::uint32_t> next{node};
  while (!next.empty()) {
    const std::uint32_t n = next.back();
    next.pop_back();
    if (titles.contains(n)) found.insert(n);
    for (const ValueId v : graph.node(n).in)
      if (seen.insert(v.node).second) next.push_back(v.node);
  }
  return found;
}

}  // namespace

std::string origin_of(const Graph& graph, ValueId v, const InputTitles& titles) {
  if (const auto title = titles.find(v.node); title != titles.end()) return title->second;
  if (const Name id = state_id(graph.node(v.node)); id && graph.find_state(id) == v)
    return id.str();
  std::string text;
  for (const std::uint32_t n : inputs_behind(graph, v.node, titles))
    text += (text.empty() ? "computed from " : " and ") + titles.at(n);
  return text;
}

void add_origins(Error& refusal, const Graph& graph, std::span<const ValueId> operands,
                 const InputTitles& titles) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (const std::string origin = origin_of(graph, operands[i], titles); !origin.empty())
      refusal.add_line("from", "in " + std::to_string(i) + ": " + origin);
}

}  // namespace aloft
