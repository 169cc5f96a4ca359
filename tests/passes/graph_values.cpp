#include "passes/graph_values.h"

#include <limits>

namespace aloft::testing {

GraphValues GraphMeaning::run() const {
  const Values values = evaluate(std::numeric_limits<std::uint32_t>::max(), {});
  GraphValues result;
  for (const GraphOutput& o : graph_.outputs()) result.outputs[o.name] = values.at(o.value);
  for (const StateUpdate& u : graph_.updates()) result.updates[u.id] = values.at(u.value);
  return result;
}

GraphMeaning::Values GraphMeaning::evaluate(std::uint32_t end,
                                            const std::vector<Nudge>& nudges) const {
  Values values;
  for (std::uint32_t n : graph_.order()) {
    if (n == end) break;
    std::vector<HostArray> out = results_of(n, values, nudges);
    for (std::uint32_t i = 0; i < out.size(); ++i) values[{n, i}] = std::move(out[i]);
    for (const Nudge& nudge : nudges)
      if (nudge.value.node == n) values[nudge.value][nudge.element] += nudge.by;
  }
  return values;
}

std::vector<HostArray> GraphMeaning::results_of(std::uint32_t n, const Values& values,
                                                const std::vector<Nudge>& nudges) const {
  const Node& node = graph_.node(n);
  if (node.op == Name("input") || node.op == Name("state")) {
    HostArray value = given_.at(std::get<std::string>(*node.attrs.find("name")));
    value.dtype = node.out[0].dtype;
    return {value};
  }
  if (node.op == Name("gradients")) return differences(n, values, nudges);
  std::vector<HostArray> in;
  for (ValueId v : node.in) in.push_back(values.at(v));
  return evaluate_op(op_named(node.op), bind_lengths(node.attrs, lengths_), in, rounding_);
}

// d sum(seed * target) / d element, from four points: the error is of fourth order in the step, so
// that differences of differences are still good to six digits.
std::vector<HostArray> GraphMeaning::differences(std::uint32_t n, const Values& values,
                                                 const std::vector<Nudge>& nudges) const {
  constexpr double kStep = 1e-3;
  const Node& node = graph_.node(n);
  const HostArray seed = values.at(node.in[1]);
  const auto objective = [&](ValueId value, std::int64_t element, double by) {
    std::vector<Nudge> moved = nudges;
    moved.push_back({value, element, by});
    const HostArray target = evaluate(n, moved).at(node.in[0]);
    double sum = 0;
    for (std::int64_t i = 0; i < target.numel(); ++i)
      sum += target[i] * seed[seed.numel() == 1 ? 0 : i];
    return sum;
  };
  std::vector<HostArray> gradients;
  for (std::size_t i = 2; i < node.in.size(); ++i) {
    HostArray& g = gradients.emplace_back(values.at(node.in[i]));
    for (std::int64_t e = 0; e < g.numel(); ++e) {
      const auto at = [&](double steps) { return objective(node.in[i], e, steps * kStep); };
      g[e] = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * kStep);
    }
  }
  return gradients;
}

}  // namespace aloft::testing
