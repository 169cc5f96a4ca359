// hoist-updates: what a program does with a gradient comes right behind the gradient, so that the
// gradient is gone before the next one lives.
//
//   %3 = backward of a            %3 = backward of a
//   %4 = backward of b      ->    %5 = update(%0, %3)
//   %5 = update(%0, %3)           %4 = backward of b
//   %6 = update(%1, %4)           %6 = update(%1, %4)
//
// An update stays behind all that reads the variable whose new value it is, because the new value
// takes the old one's place. What waits for all gradients (norm, clipping) moves nowhere, and where
// everything waits the graph stays as it is.
#include <algorithm>
#include <map>

#include "ops/op.h"
#include "passes/pass.h"

namespace aloft {
namespace {

class Hoist {
 public:
  explicit Hoist(Graph& graph) : graph_(graph), order_(graph.order()) {
    for (std::size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
    for (const StateUpdate& u : graph.updates()) variables_[u.value.node].push_back(u.id);
  }

  // Nodes that move, or nothing where no gradient would be freed sooner.
  int run() {
    find_movable();
    std::size_t last_backward = 0;
    for (std::uint32_t n : order_)
      if (phase(n) == Phase::Backward) last_backward = place_.at(n);
    // Where each node goes: behind the node that stands at this place now.
    std::map<std::uint32_t, std::size_t> behind;
    bool frees = false;
    int moved = 0;
    for (std::uint32_t n : order_) {
      behind[n] = is_op(n) ? place_.at(n) : 0;  // variables and inputs wait for nothing
      if (!movable_.contains(n)) continue;
      std::size_t at = 0;
      for (ValueId v : graph_.node(n).in) at = std::max(at, behind.at(v.node));
      for (Name variable : variables_[n]) at = std::max(at, last_reader(variable, n, behind));
      behind[n] = at;
      ++moved;
      frees = frees || (reads_gradient(n) && at < last_backward);
    }
    if (!frees) return 0;
    std::vector<std::uint32_t> order = order_;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return behind.at(a) < behind.at(b); });
    if (order == order_) return 0;
    graph_.set_order(order);
    return moved;
  }

 private:
  Phase phase(std::uint32_t n) const { return graph_.node(n).where.phase; }
  bool is_op(std::uint32_t n) const { return find_op(graph_.node(n).op) != nullptr; }
  bool reads_gradient(std::uint32_t n) const {
    const auto& in = graph_.node(n).in;
    return std::any_of(in.begin(), in.end(),
                       [&](ValueId v) { return phase(v.node) == Phase::Backward; });
  }

  // Nodes of the update that depend on a gradient, and those of the update that they depend on.
  void find_movable() {
    for (std::uint32_t n : order_) {
      if (phase(n) != Phase::Update || !is_op(n)) continue;
      const auto& in = graph_.node(n).in;
      if (reads_gradient(n) ||
          std::any_of(in.begin(), in.end(), [&](ValueId v) { return movable_.contains(v.node); }))
        movable_[n] = true;
    }
    for (auto n = order_.rbegin(); n != order_.rend(); ++n)
      if (movable_.contains(*n))
        for (ValueId v : graph_.node(*n).in)
          if (phase(v.node) == Phase::Update && is_op(v.node)) movable_[v.node] = true;
  }

  // The place behind which nothing before `n` reads the variable's old value, itself or a view.
  std::size_t last_reader(Name variable, std::uint32_t n,
                          const std::map<std::uint32_t, std::size_t>& behind) const {
    const auto state = graph_.find_state(variable);
    return state ? last_user(state->node, n, behind) : 0;
  }
  std::size_t last_user(std::uint32_t of, std::uint32_t n,
                        const std::map<std::uint32_t, std::size_t>& behind) const {
    std::size_t last = 0;
    for (std::uint32_t user : graph_.users(of)) {
      if (user == n || place_.at(user) > place_.at(n)) continue;
      last = std::max(last, behind.at(user));
      if (graph_.node(user).op == Name("reshape"))
        last = std::max(last, last_user(user, n, behind));
    }
    return last;
  }

  Graph& graph_;
  const std::vector<std::uint32_t> order_;
  std::map<std::uint32_t, std::size_t> place_;
  std::map<std::uint32_t, std::vector<Name>> variables_;  // whose new values a node gives
  std::map<std::uint32_t, bool> movable_;
};

PassReport run(Graph& graph, const PassContext&) {
  PassReport report;
  if (const int moved = Hoist(graph).run(); moved > 0) {
    report.changed = true;
    report.remarks.push_back({graph.name.str(), RemarkKind::UpdatesHoisted, std::to_string(moved)});
  }
  return report;
}

}  // namespace

const Pass hoist_updates{"hoist-updates",
                         "updates follow their gradients, which are then gone",
                         Form::Differentiated,
                         std::nullopt,
                         true,
                         run};

}  // namespace aloft
