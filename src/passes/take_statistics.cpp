// take-statistics: a tap whose name asks for statistics shows those of its value.
//
//   %2 = exp(%0) path="m"                       %2 = exp(%0) path="m"
//   %3 = neg(%2)                           ->   %3 = statistics(%2) path="m"
//   return y=%3 tap:"statistics:m/exp#0"=%2     %4 = neg(%2)
//                                               %5 = concat(%3)
//                                               return y=%4 tap:"statistics:m/exp#0"=%3
//                                                      tap:"all statistics"=%5
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
#include "ops/concat.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "ops/statistics.h"
#include "passes/pass.h"
#include "passes/tap_pattern.h"

namespace aloft {
namespace {

const Name kStatistics = "statistics";

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
      if (graph_.node(o.value.node).op == kStatistics) continue;
      graph_.set_output(o.name, statistics_of(o.value), OutputKind::Tap);
    }
    if (all_.empty()) return {};
    join();
    return {true};
  }

 private:
  ValueId statistics_of(ValueId v) {
    if (const auto known = of_.find(v); known != of_.end()) return known->second;
    const Node& node = graph_.node(v.node);
    Where where = node.where;
    where.pass = "take-statistics";
    where.reason = "a tap of statistics";
    where.policy = {};
    emitter_.insert_before(reader_of(v));
    const Tensor x = emitter_.handle(v);
    all_.push_back(emitter_.emit({kStatistics, to_attrs(StatisticsAttrs{})}, {&x, 1}, where)[0]);
    return of_[v] = all_.back().id();
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
  std::map<std::uint32_t, std::size_t> place_;   // in the order of the graph as it came
  std::map<std::uint32_t, std::uint32_t> next_;  // behind each node
  std::map<ValueId, ValueId> of_;                // statistics, by value
  std::vector<Tensor> all_;
};

PassReport run(Graph& graph, const PassContext&) {
  const auto& outputs = graph.outputs();
  const bool is_asked = std::any_of(outputs.begin(), outputs.end(), [](const GraphOutput& o) {
    return o.kind == OutputKind::Tap && is_statistics(o.name.str());
  });
  return is_asked ? Taking(graph).run() : PassReport{};
}

}  // namespace

const Pass take_statistics{"take-statistics",
                           "taps of statistics show those instead of the value",
                           Form::Executable,
                           std::nullopt,
                           true,
                           run};

}  // namespace aloft
