// expand-bodies: an op for which the back end has no kernel becomes its body, again and again
// until every op has one. What has neither is an error that lists the refusals.
#include "base/error.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "passes/pass.h"

namespace aloft {
namespace {

CallSpec call_of(const Graph& graph, const Node& node, int threads) {
  CallSpec call;
  call.op = node.op;
  call.attrs = node.attrs;
  call.form = node.form;
  for (ValueId v : node.in) call.in.push_back(graph.type(v));
  call.out = node.out;
  call.threads = threads;
  return call;
}

PassReport run(Graph& graph, const PassContext& context) {
  PassReport report;
  constexpr int kDeepest = 16;
  for (int depth = 0; depth < kDeepest; ++depth) {
    bool expanded = false;
    for (std::uint32_t n : std::vector(graph.order())) {
      const Node& node = graph.node(n);
      const OpDef* op = find_op(node.op);
      if (!op) continue;
      const CallSpec call = call_of(graph, node, context.threads);
      const KernelChoice choice = context.choose(call);
      if (!choice.kernel.empty()) continue;
      if (!op->body)
        throw nothing_computes(call, choice.refusals).line("node", print_node(graph, n));
      report.remarks.push_back({node.identity(), RemarkKind::RunsAsBody});
      inline_body(graph, n);
      expanded = report.changed = true;
    }
    if (!expanded) return report;
  }
  throw InternalError("bodies expand without end");
}

}  // namespace

const Pass expand_bodies{"expand-bodies",
                         "ops without a kernel become their bodies",
                         Form::Differentiated,
                         Form::Executable,
                         true,
                         run};

}  // namespace aloft
