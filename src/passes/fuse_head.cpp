// fuse-head: a projection onto classes that feeds only a cross-entropy becomes one op that holds
// the logits of a chunk of rows at a time.
//
//   %5 = linear(%3, %4)                 ->   %7 = linear_cross_entropy(%3, %4, %2)
//   %6 = cross_entropy(%5, %2)
//
// and, after differentiate, fuse-head-gradient: where the loss's cotangent is known before the loss
// (loss scale, accumulation), loss and gradients come from one sweep over the rows.
//
//   %7 = linear_cross_entropy(%3, %4, %2)
//   %9 = linear_cross_entropy_grad(%3, %4, %2, %8)        ->
//   %9 = linear_cross_entropy_sweep(%3, %4, %2, %8)
//
// The loss is then known where the gradients are, and what is computed of it before (its product
// with a batch's weight, the sum over micro-batches) waits until then, in the order that it has.
//
// Refused where the projection has a bias, where the logits have another reader (they must exist
// then; a tap is none, is lost, and leaves a note: passes/taken_in.h), where the cotangent depends
// on the loss, and where a variable changes between the loss and its gradient. A cast of the logits
// in between (O1) goes away: the fused op sums and normalises in fp32 anyway. The arithmetic
// changes: the logits' gradient may be rounded to 16 bits earlier, and gradients of the weight are
// summed by chunks. This is the one rewrite that is exempt from giving eager mode's bits; tests
// hold it to the tolerances.
#include <algorithm>

#include "ops/cross_entropy.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "passes/taken_in.h"

namespace aloft {
namespace {

bool is(const Graph& g, ValueId v, const char* op) {
  return v.index == 0 && g.node(v.node).op == Name(op);
}

Where fused_where(const Graph& g, std::uint32_t n, const char* pass) {
  Where w = g.node(n).where;
  w.pass = pass;
  w.reason = "logits are held by chunks of rows";
  return w;
}

// The linear node behind a cross-entropy's logits, if nobody else reads them. `members` receives
// what the fused op takes in.
std::optional<std::uint32_t> private_head(const Graph& g, ValueId logits, std::string& members) {
  if (g.use_count(logits) != 1) return std::nullopt;
  if (is(g, logits, "cast")) {
    members = g.node(logits.node).identity() + ", ";
    logits = g.node(logits.node).in[0];
    if (g.use_count(logits) != 1) return std::nullopt;
  }
  if (!is(g, logits, "linear") || g.node(logits.node).in.size() != 2) return std::nullopt;
  members = g.node(logits.node).identity() + ", " + members;
  return logits.node;
}

PassReport fuse_forward(Graph& g, const PassContext&) {
  PassReport report;
  for (std::uint32_t n : std::vector(g.order())) {
    const Node loss = g.node(n);
    if (loss.erased || loss.op != Name("cross_entropy")) continue;
    std::string members;
    const auto head = private_head(g, loss.in[0], members);
    if (!head) {
      report.remarks.push_back({loss.identity(), RemarkKind::HeadApart});
      continue;
    }
    GraphEmitter emitter(g);
    emitter.insert_before(n);
    const Tensor in[] = {emitter.handle(g.node(*head).in[0]), emitter.handle(g.node(*head).in[1]),
                         emitter.handle(loss.in[1])};
    Where where = fused_where(g, n, "fuse-head");
    // What of it comes in several types is the head's products, above all their gradients.
    where.policy = g.node(*head).where.policy;
    where.listed = g.node(*head).where.listed;
    const auto fused =
        emitter.emit({"linear_cross_entropy", loss.attrs, g.node(*head).form}, in, where);
    if (g.type(fused[0].id()) != loss.out[0]) continue;  // the fused node is dead and goes below
    g.set_members(fused[0].id().node, members + loss.identity());
    g.replace_uses({n, 0}, fused[0].id());
    note_taken_in(g, *head, fused[0].id().node);
    report.changed = true;
    report.remarks.push_back({loss.identity(), RemarkKind::HeadFused});
  }
  report.changed |= remove_dead(g);
  return report;
}

bool depends_on(const Graph& g, ValueId v, std::uint32_t n) {
  std::vector<bool> seen(g.capacity(), false);
  std::vector<std::uint32_t> open{v.node};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    if (at == n) return true;
    if (seen[at]) continue;
    seen[at] = true;
    for (ValueId in : g.node(at).in) open.push_back(in.node);
  }
  return false;
}

// Whether a variable takes its new value between the two: what reads the old one may not wait.
bool updates_between(const Graph& g, std::uint32_t loss, std::uint32_t gradient) {
  const auto& all = g.updates();
  return std::any_of(all.begin(), all.end(), [&](const StateUpdate& u) {
    return g.comes_before(loss, u.value.node) && g.comes_before(u.value.node, gradient);
  });
}

// All that depends on the loss comes behind the gradient, so that the loss may be computed there.
void let_readers_wait(Graph& g, std::uint32_t loss, std::uint32_t gradient) {
  std::vector<bool> waits(g.capacity(), false);
  waits[loss] = true;
  std::vector<std::uint32_t> order, waiting;
  for (std::uint32_t n : g.order()) {
    const std::vector<ValueId>& in = g.node(n).in;
    if (g.comes_before(loss, n) && g.comes_before(n, gradient) &&
        std::any_of(in.begin(), in.end(), [&](ValueId v) { return waits[v.node]; })) {
      waits[n] = true;
      waiting.push_back(n);
      continue;
    }
    order.push_back(n);
    if (n == gradient) order.insert(order.end(), waiting.begin(), waiting.end());
  }
  if (!waiting.empty()) g.set_order(order);
}

// The loss that `grad` is the gradient of: the same head against the same targets. None where
// nobody asks for it, or another sweep gives it already.
std::optional<std::uint32_t> loss_of(const Graph& g, const Node& grad) {
  for (std::uint32_t user : g.users(grad.in[0].node)) {
    const Node& loss = g.node(user);
    if (loss.op == Name("linear_cross_entropy") && g.use_count({user, 0}) > 0 &&
        loss.attrs == grad.attrs && loss.form == grad.form &&
        std::equal(loss.in.begin(), loss.in.end(), grad.in.begin()))
      return user;
  }
  return std::nullopt;
}

PassReport fuse_gradient(Graph& g, const PassContext&) {
  PassReport report;
  for (std::uint32_t n : std::vector(g.order())) {
    const Node grad = g.node(n);
    if (grad.erased || grad.op != Name("linear_cross_entropy_grad")) continue;
    const auto loss = loss_of(g, grad);
    if (!loss || depends_on(g, grad.in[3], *loss) || updates_between(g, *loss, n)) continue;
    const Node forward = g.node(*loss);
    GraphEmitter emitter(g);
    emitter.insert_before(n);
    const Tensor in[] = {emitter.handle(grad.in[0]), emitter.handle(grad.in[1]),
                         emitter.handle(grad.in[2]), emitter.handle(grad.in[3])};
    const auto sweep = emitter.emit({"linear_cross_entropy_sweep", grad.attrs, grad.form}, in,
                                    fused_where(g, n, "fuse-head-gradient"));
    if (g.type(sweep[1].id()) != grad.out[0] || g.type(sweep[2].id()) != grad.out[1]) continue;
    let_readers_wait(g, *loss, n);
    g.set_members(sweep[0].id().node, forward.identity() + ", " + grad.identity());
    g.replace_uses({*loss, 0}, sweep[0].id());
    g.replace_uses({n, 0}, sweep[1].id());
    g.replace_uses({n, 1}, sweep[2].id());
    report.changed = true;
    report.remarks.push_back({grad.identity(), RemarkKind::HeadSwept});
  }
  report.changed |= remove_dead(g);
  return report;
}

}  // namespace

const Pass fuse_head{"fuse-head", "a head and its cross-entropy become one op",
                     Form::Cast,  std::nullopt,
                     false,       fuse_forward};
const Pass fuse_head_gradient{"fuse-head-gradient",
                              "loss and gradients of the head in one sweep",
                              Form::Differentiated,
                              Form::Fused,
                              false,
                              fuse_gradient};

}  // namespace aloft
