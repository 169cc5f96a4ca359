// fuse-embedding-gradient: the gradient of an embedding's table that is added to another gradient
// (a tied head's) becomes one op that adds rows to it in place; no table of zeros is made.
//
//   %7 = embedding_grad(%5, %1) {rows=5}    ->    %8 = embedding_grad_add(%6, %5, %1)
//   %8 = add(%6, %7)
//
// Refused where the table of rows has another reader (a tap is none, is lost, and leaves a note:
// passes/taken_in.h), and where the sum broadcasts. Results are the same to the bit, but for the
// sign of a zero: -0 in a row that no id names stays -0, where adding 0 gave +0.
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "passes/taken_in.h"

namespace aloft {
namespace {

// The operand of `sum` that is an embedding's gradient which nobody else reads, or -1.
int rows_operand(const Graph& g, const Node& sum) {
  for (int i = 1; i >= 0; --i) {
    const ValueId v = sum.in[i];
    if (g.node(v.node).op == Name("embedding_grad") && g.use_count(v) == 1 &&
        g.type(sum.in[1 - i]) == sum.out[0] && g.type(v) == sum.out[0])
      return i;
  }
  return -1;
}

PassReport run(Graph& g, const PassContext&) {
  PassReport report;
  for (std::uint32_t n : std::vector(g.order())) {
    const Node sum = g.node(n);
    if (sum.erased || sum.op != Name("add")) continue;
    const int i = rows_operand(g, sum);
    if (i < 0) continue;
    const Node rows = g.node(sum.in[i].node);
    GraphEmitter emitter(g);
    emitter.insert_before(n);
    Where where = sum.where;
    where.pass = "fuse-embedding-gradient";
    where.reason = "rows are added in place";
    const Tensor in[] = {emitter.handle(sum.in[1 - i]), emitter.handle(rows.in[0]),
                         emitter.handle(rows.in[1])};
    const auto fused = emitter.emit({"embedding_grad_add", {}}, in, where);
    g.set_members(fused[0].id().node, rows.identity() + ", " + sum.identity());
    g.replace_uses({n, 0}, fused[0].id());
    note_taken_in(g, sum.in[i].node, fused[0].id().node);
    report.changed = true;
    report.remarks.push_back({sum.identity(), RemarkKind::RowsAdded});
  }
  report.changed |= remove_dead(g);
  return report;
}

}  // namespace

const Pass fuse_embedding_gradient{
    "fuse-embedding-gradient",
    "an embedding's gradient is added to a tied head's in place; -0 may stay",
    Form::Differentiated,
    std::nullopt,
    true,
    run};

}  // namespace aloft
