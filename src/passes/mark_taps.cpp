// mark-taps: values that somebody asks to see become taps, before a pass may take them away.
//
//   %2 = linear(%0, %1) path="fc"          %2 = linear(%0, %1) path="fc"
//   %3 = relu(%2)                    ->    %3 = relu(%2)
//   taps "fc"                              taps "fc"
//   return y=%3                            return y=%3 tap:"fc/linear#0"=%2
//
// Of a parameter whose gradients are summed over micro-batches the sum is marked as its gradient.
// A pattern of statistics marks floats alone, by a name that says so; take-statistics does the
// rest. It runs before the first fusion, and once more for what differentiate has made. A tap
// counts as no use (graph/graph.h): every pass does what it would do without it, and carries it
// along, or loses it where no value is left that could be looked at (passes/taps.h says so to
// whoever asked). Refused: a value whose name a result has.
#include <algorithm>

#include "base/error.h"
#include "ops/op.h"
#include "passes/lower_to_plan.h"
#include "passes/pass.h"
#include "passes/taken_in.h"
#include "passes/tap_pattern.h"

namespace aloft {
namespace {

// Whether the pass gave the value its tap already, and whether something else has the name.
bool is_marked(const Graph& g, const std::string& name) {
  const auto& lost = g.lost_taps();
  if (std::find(lost.begin(), lost.end(), Name(name)) != lost.end()) return true;
  for (const GraphOutput& o : g.outputs()) {
    if (o.name != Name(name)) continue;
    if (o.kind == OutputKind::Tap) return true;
    throw UserError("E0326", "a result of the program has the name of a value to tap")
        .saw(name)
        .need("another name for the result");
  }
  return false;
}

// A call of an op that stands for nothing but itself.
bool is_before_fusion(const Node& node) { return find_op(node.op) && node.members.empty(); }

bool is_parameter(const Node& node) {
  return node.op == Name("state") && slot_of(node).cls == StateClass::Parameter;
}

std::string name_of_input(const Node& node) {
  return std::get<std::string>(*node.attrs.find("name"));
}

// Marks the value of this name for each kind of pattern that asks for it. True if one did.
bool mark(Graph& graph, const std::vector<TapPattern>& patterns, const std::string& value,
          ValueId v) {
  bool is_new = false;
  for (const std::string_view prefix : {std::string_view(), kStatisticsPrefix, kExponentsPrefix}) {
    if (!prefix.empty() && !is_float(graph.type(v).dtype)) continue;
    const std::string name = std::string(prefix) + value;
    const bool is_asked = std::any_of(patterns.begin(), patterns.end(),
                                      [&](const TapPattern& p) { return p.matches(name); });
    if (!is_asked || is_marked(graph, name)) continue;
    graph.set_output(name, v, OutputKind::Tap);
    is_new = true;
  }
  return is_new;
}

// Where the new value is made that a step's addition is seen in: that of the master, where the
// parameter's is rounded from it.
ValueId whole_value(const Graph& graph, const StateUpdate& update) {
  const Node& node = graph.node(update.value.node);
  if (node.op != Name("cast")) return update.value;
  const auto is_master = [&](const StateUpdate& u) { return u.value == node.in[0]; };
  return std::ranges::any_of(graph.updates(), is_master) ? node.in[0] : update.value;
}

// What the step adds to a parameter is shown where its new value is made.
bool mark_update(Graph& graph, const std::vector<TapPattern>& patterns, const StateUpdate& update) {
  const auto state = graph.find_state(update.id);
  if (!state || !is_parameter(graph.node(state->node)) || update.value == *state) return false;
  bool is_new = false;
  for (const std::string_view prefix : {kStatisticsPrefix, kExponentsPrefix}) {
    const std::string name = update_tap(prefix, update.id.str());
    const bool is_asked = std::any_of(patterns.begin(), patterns.end(),
                                      [&](const TapPattern& p) { return p.matches(name); });
    if (!is_asked || is_marked(graph, name)) continue;
    graph.set_output(name, whole_value(graph, update), OutputKind::Tap);
    is_new = true;
  }
  return is_new;
}

// Where gradients are summed over micro-batches, that of the whole step: the sum, behind the last.
std::optional<ValueId> summed_gradient(const Graph& graph, Name variable) {
  const auto sums = graph.find_state(Name("accumulated." + variable.str()));
  if (!sums || slot_of(graph.node(sums->node)).cls != StateClass::Gradient) return std::nullopt;
  for (const std::uint32_t reader : graph.readers(*sums))
    if (graph.node(reader).op == Name("add")) return ValueId{reader, 0};
  return std::nullopt;
}

PassReport run(Graph& graph, const PassContext&) {
  PassReport report;
  std::vector<TapPattern> patterns;
  for (Name p : graph.tap_patterns())
    if (!is_note_of_fusion(p.str())) patterns.emplace_back(p.str());
  if (patterns.empty()) return report;
  for (std::uint32_t n : graph.order()) {
    const Node& node = graph.node(n);
    if (is_parameter(node)) {
      const std::string name = parameter_tap(state_id(node).str());
      report.changed |= mark(graph, patterns, name, {n, 0});
      if (const auto sum = summed_gradient(graph, state_id(node)))
        report.changed |= mark(graph, patterns, gradient_of_tap(name)->name, *sum);
    }
    if (node.op == Name("input"))
      report.changed |= mark(graph, patterns, input_tap(name_of_input(node)), {n, 0});
    else if (node.op == Name("state") && !is_parameter(node))
      report.changed |= mark(graph, patterns, variable_tap(state_id(node).str()), {n, 0});
    if (!is_before_fusion(node)) continue;
    for (std::uint32_t i = 0; i < node.out.size(); ++i)
      report.changed |= mark(graph, patterns, tap_name(node, i), {n, i});
  }
  for (const StateUpdate& u : graph.updates()) report.changed |= mark_update(graph, patterns, u);
  return report;
}

}  // namespace

const Pass mark_taps{"mark-taps", "values that somebody asks to see become taps",
                     Form::Cast,  std::nullopt,
                     true,        run};

}  // namespace aloft
