// take-statistics: a tap whose name asks for statistics shows those of its value.
//
//   %2 = exp(%0) path="m"                       %2 = exp(%0) path="m"
//   %3 = neg(%2)                           ->   %3 = statistics(%2) path="m"
//   return y=%3 tap:"statistics:m/exp#0"=%2     %4 = neg(%2)
//                                               %5 = concat(%3)
//                                               return y=%4 tap:"statistics:m/exp#0"=%3
//                                                      tap:"all statistics"=%5
//
// What a step adds to a parameter ("statistics:parameter:w.update") the update op says itself,
// which has both values at hand; where another op makes the new value, or the master behind it, the
// difference is taken of it and the variable.
//
// What is inside an attention and asked for by name (passes/attention_taps.h) is computed here
// first, behind its call, and so is what a fusion took in (passes/taken_in.h), in front of it.
//
// The value lives no longer for it than its other readers need it, and what is kept to the end of
// the run is small. It runs behind everything that decides: what it looks at is computed by the
// kernels that compute it when nobody looks, in the same order. Statistics are taken right behind
// what makes the value, before anything is written in its place; of a variable or an input, before
// its first reader. All of them lie in one array, in the order in which the taps first name their
// values, so that the host reads them at once.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/cast.h"
#include "ops/concat.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "ops/statistics.h"
#include "ops/update.h"
#include "passes/attention_taps.h"
#include "passes/pass.h"
#include "passes/taken_in.h"
#include "passes/tap_pattern.h"

namespace aloft {
namespace {

const Name kStatistics = "statistics";

// The layout of an update op's call; nothing of another node.
std::optional<UpdateLayout> layout_of(const Node& node) {
  const optim::FormulaRecord* formula = formula_of_update(node.op);
  if (!formula) return std::nullopt;
  return update_layout(update_attrs(node.attrs), *formula);
}

// Where an update op makes the value, it gets results that say what it adds.
void with_statistics(Graph& graph, ValueId v) {
  const Node old = graph.node(v.node);
  const auto layout = layout_of(old);
  if (!layout || layout->has_statistics) return;
  GraphEmitter emitter(graph);
  emitter.insert_before(v.node);
  Attrs attrs = old.attrs;
  attrs.set("statistics", true);
  std::vector<Tensor> in;
  for (const ValueId operand : old.in) in.push_back(emitter.handle(operand));
  const std::vector<Tensor> out = emitter.emit({old.op, attrs, old.form}, in, old.where);
  const std::uint32_t n = out[0].id().node;
  graph.set_occurrence(n, old.occurrence);
  graph.set_members(n, old.members);
  for (std::uint32_t i = 0; i < old.out.size(); ++i) graph.replace_uses({v.node, i}, {n, i});
  graph.erase(v.node);
}

class Taking {
 public:
  explicit Taking(Graph& graph) : graph_(graph), emitter_(graph) {
    const std::vector<std::uint32_t>& order = graph.order();
    for (std::size_t i = 0; i < order.size(); ++i) {
      place_[order[i]] = i;
      if (i > 0) next_[order[i - 1]] = order[i];
    }
  }

  PassReport run() {
    for (const GraphOutput& o : std::vector(graph_.outputs())) {
      if (o.kind != OutputKind::Tap || !is_statistics(o.name.str())) continue;
      if (is_taken(o.value)) continue;
      const bool is_update = is_update_tap(o.name.str());
      const bool exponents = shown_prefix(o.name.str()) == kExponentsPrefix;
      graph_.set_output(o.name,
                        is_update ? statistics_of_update(o.value)
                                  : statistics_of(o.value, {exponents, shows_scores(o.name.str())}),
                        OutputKind::Tap);
    }
    if (all_.empty()) return {};
    join();
    return {true};
  }

 private:
  bool is_taken(ValueId v) const {
    const Node& node = graph_.node(v.node);
    const auto layout = layout_of(node);
    return node.op == kStatistics || (layout && layout->has_statistics &&
                                      v.index >= static_cast<std::uint32_t>(layout->statistics(0)));
  }

  ValueId statistics_of_update(ValueId v) {
    if (const auto layout = layout_of(graph_.node(v.node))) {
      all_.push_back(emitter_.handle(
          {v.node, static_cast<std::uint32_t>(layout->statistics(static_cast<int>(v.index)))}));
      return all_.back().id();
    }
    const auto [before, behind] = values_around(v);
    Where where = graph_.node(v.node).where;
    where.pass = "take-statistics";
    where.reason = "what the step adds";
    where.policy = {};
    emitter_.insert_before(reader_of(v));
    const auto in_f32 = [&](ValueId of) {
      const Tensor x = emitter_.handle(of);
      return x.dtype() == DType::F32
                 ? x
                 : emitter_.emit({"cast", to_attrs(CastAttrs{DType::F32})}, {&x, 1}, where)[0];
    };
    const Tensor in[] = {in_f32(behind), in_f32(before)};
    const Tensor change = emitter_.emit({"sub", {}}, in, where)[0];
    all_.push_back(
        emitter_.emit({kStatistics, to_attrs(StatisticsAttrs{})}, {&change, 1}, where)[0]);
    return all_.back().id();
  }

  // The variable and its new value v, or those of the master that v was rounded from.
  std::pair<ValueId, ValueId> values_around(ValueId v) const {
    const Node& node = graph_.node(v.node);
    for (const ValueId made : {node.op == Name("cast") ? node.in[0] : v, v})
      for (const StateUpdate& u : graph_.updates())
        if (u.value == made) return {*graph_.find_state(u.id), made};
    throw InternalError("what a step adds is asked for of a variable");
  }

  ValueId statistics_of(ValueId v, const StatisticsAttrs& attrs) {
    const std::pair key(v, attrs.exponents);
    if (const auto known = of_.find(key); known != of_.end()) return known->second;
    const Node& node = graph_.node(v.node);
    Where where = node.where;
    where.pass = "take-statistics";
    where.reason = "a tap of statistics";
    where.policy = {};
    emitter_.insert_before(reader_of(v));
    const Tensor x = emitter_.handle(v);
    all_.push_back(emitter_.emit({kStatistics, to_attrs(attrs)}, {&x, 1}, where)[0]);
    return of_[key] = all_.back().id();
  }

  // The node before which statistics of the value are taken; nothing: behind all.
  std::optional<std::uint32_t> reader_of(ValueId v) const {
    const Name op = graph_.node(v.node).op;
    if (op != Name("state") && op != Name("input")) {
      const auto next = next_.find(v.node);
      return next == next_.end() ? std::nullopt : std::optional(next->second);
    }
    std::optional<std::uint32_t> first;
    for (const std::uint32_t reader : graph_.readers(v))
      if (place_.contains(reader) && (!first || place_.at(reader) < place_.at(*first)))
        first = reader;
    return first;
  }

  void join() {
    for (const GraphOutput& o : graph_.outputs())
      if (o.name == Name(kAllStatistics))
        throw UserError("E0326", "a result of the program has the name of its statistics")
            .saw(o.name.str())
            .need("another name for the result");
    emitter_.insert_before(std::nullopt);
    Where where;
    where.pass = "take-statistics";
    where.reason = "one array for the host";
    const Tensor joined = emitter_.emit({"concat", to_attrs(ConcatAttrs{0})}, all_, where)[0];
    graph_.set_output(Name(kAllStatistics), joined.id(), OutputKind::Tap);
  }

  Graph& graph_;
  GraphEmitter emitter_;
  std::map<std::uint32_t, std::size_t> place_;      // in the order of the graph as it came
  std::map<std::uint32_t, std::uint32_t> next_;     // behind each node
  std::map<std::pair<ValueId, bool>, ValueId> of_;  // statistics, by value and with exponents
  std::vector<Tensor> all_;
};

PassReport run(Graph& graph, const PassContext& context) {
  PassReport report;
  report.changed = show_attention(graph);
  report.changed |= show_taken_in(graph, context);
  const auto& outputs = graph.outputs();
  const bool is_asked = std::any_of(outputs.begin(), outputs.end(), [](const GraphOutput& o) {
    return o.kind == OutputKind::Tap && is_statistics(o.name.str());
  });
  if (!is_asked) return report;
  for (std::size_t i = 0; i < outputs.size(); ++i)  // what they show moves on the way
    if (outputs[i].kind == OutputKind::Tap && is_update_tap(outputs[i].name.str()))
      with_statistics(graph, outputs[i].value);
  report.changed |= Taking(graph).run().changed;
  return report;
}

}  // namespace

const Pass take_statistics{"take-statistics",
                           "taps of statistics show those instead of the value",
                           Form::Executable,
                           std::nullopt,
                           true,
                           run};

}  // namespace aloft
