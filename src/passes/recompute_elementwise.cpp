// recompute-elementwise: what the backward pass reads of an element-wise op is computed once more
// there, where all that the op reads is kept anyway; its result need not live until then.
//
//   forward   %2 = silu(%0)                   forward   %2 = silu(%0)
//             %3 = mul(%2, %1)                          %3 = mul(%2, %1)
//             %4 = matmul(%3, %w)       ->              %4 = matmul(%3, %w)
//   backward  %6 = matmul(%3, %5)             backward  %7 = silu(%0)
//             ... reads %0, %1, %2                      %8 = mul(%7, %1)
//                                                       %6 = matmul(%8, %5)
//                                                       ... reads %0, %1, %7
//
// The same op on the same values: the bits stay. Only where it is asked for (train.recompute): it
// is memory for time. An op that draws random numbers, or reads a variable, stays as it is.
#include <algorithm>
#include <set>

#include "ops/op.h"
#include "passes/pass.h"

namespace aloft {
namespace {

class Recompute {
 public:
  explicit Recompute(Graph& graph) : graph_(graph) {}

  PassReport run() {
    PassReport report;
    const std::vector<std::uint32_t> order = graph_.order();
    std::vector<std::uint32_t> found;
    for (std::uint32_t n : order)
      if (is_cheap(n)) found.push_back(n);
    // The last first: what a clone reads has one reader more in the backward pass, and its own
    // clone stands before that.
    for (auto n = found.rbegin(); n != found.rend(); ++n) {
      clone(*n);
      report.remarks.push_back({graph_.node(*n).identity(), RemarkKind::Recomputed});
    }
    report.changed = !found.empty();
    return report;
  }

 private:
  bool is(std::uint32_t n, Phase phase) const { return graph_.node(n).where.phase == phase; }

  std::vector<std::uint32_t> readers(ValueId v, Phase phase) const {
    std::vector<std::uint32_t> all = graph_.readers(v);
    std::erase_if(all, [&](std::uint32_t n) { return !is(n, phase); });
    return all;
  }

  bool is_cheap(std::uint32_t n) const {
    const Node& node = graph_.node(n);
    const OpDef* op = find_op(node.op);
    if (op == nullptr || op->fusion != Fusion::Elementwise || !is(n, Phase::Forward) ||
        node.in.empty() || node.out.size() != 1)
      return false;
    // Another reader forward: a value that the backward pass alone reads lives no longer there.
    if (readers({n, 0}, Phase::Backward).empty() || readers({n, 0}, Phase::Forward).empty())
      return false;
    return std::all_of(node.in.begin(), node.in.end(), [&](ValueId v) {
      return find_op(graph_.node(v.node).op) != nullptr && is(v.node, Phase::Forward) &&
             !readers(v, Phase::Backward).empty();
    });
  }

  void clone(std::uint32_t n) {
    const Node node = graph_.node(n);
    const std::vector<std::uint32_t> late = readers({n, 0}, Phase::Backward);
    const std::uint32_t first = *std::min_element(
        late.begin(), late.end(),
        [&](std::uint32_t a, std::uint32_t b) { return graph_.comes_before(a, b); });
    Where where = node.where;
    where.phase = Phase::Backward;
    where.pass = "recompute-elementwise";
    where.reason = "its result is not kept";
    const std::uint32_t again = graph_.add(node.op, node.attrs, node.in, node.out, where, first);
    graph_.set_form(again, node.form);
    for (std::uint32_t reader : late)
      for (int i = 0; i < static_cast<int>(graph_.node(reader).in.size()); ++i)
        if (graph_.node(reader).in[i] == ValueId{n, 0}) graph_.set_input(reader, i, {again, 0});
  }

  Graph& graph_;
};

PassReport run(Graph& graph, const PassContext&) { return Recompute(graph).run(); }

}  // namespace

const Pass recompute_elementwise{
    "recompute-elementwise",
    "element-wise results are computed again in the backward pass (train.recompute)",
    Form::Differentiated,
    std::nullopt,
    true,
    run,
    true};

}  // namespace aloft
