// fuse-norm: a residual's addition and the norm that reads it become one op with both results, and
// so do a norm's gradient and the addition of the residual's.
//
//   %4 = add(%0, %1)                       ->   %4 = add_layer_norm(%0, %1, %2, %3)
//   %5 = layer_norm(%4, %2, %3)                 (%4 is the norm, %4.3 the sum)
//
//   %6 = layer_norm_grad(%0, %1, ...)      ->   %7 = layer_norm_grad_add(%5, %0, %1, ...)
//   %7 = add(%5, %6)
//
// Refused where the addition broadcasts or changes the type, where another reader of the sum comes
// before the norm or the norm reads it twice, and where dx or a parameter's gradient is read before
// the addition. A tap of the sum follows it. One of dx is lost, as dx alone is never written, and
// leaves a note (passes/taken_in.h).
#include <algorithm>
#include <iterator>

#include "ops/add_norm.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "passes/taken_in.h"

namespace aloft {
namespace {

const FusedNorm* fused_norm(Name op) {
  const auto* found = std::find_if(std::begin(kFusedNorms), std::end(kFusedNorms),
                                   [&](const FusedNorm& f) { return op == Name(f.norm); });
  return found == std::end(kFusedNorms) ? nullptr : found;
}

// Adds two values of one type, element by element.
bool is_plain_sum(const Graph& g, const Node& n) {
  return n.op == Name("add") && g.type(n.in[0]) == n.out[0] && g.type(n.in[1]) == n.out[0];
}

class Fusing {
 public:
  explicit Fusing(Graph& g) : g_(g) {}

  PassReport run() {
    for (std::uint32_t n : std::vector(g_.order())) {
      if (g_.node(n).erased) continue;
      const FusedNorm* f = fused_norm(g_.node(n).op);
      if (!f) continue;
      if (f->is_gradient)
        gradient(n, *f);
      else
        forward(n, *f);
    }
    report_.changed |= remove_dead(g_);
    return std::move(report_);
  }

 private:
  // Every reader of n's outputs, but for `except`, comes behind `place`.
  bool readers_follow(std::uint32_t n, std::uint32_t except, std::uint32_t place) const {
    const std::vector<std::uint32_t> users = g_.users(n);
    return std::none_of(users.begin(), users.end(), [&](std::uint32_t user) {
      return user != except && g_.comes_before(user, place);
    });
  }

  std::vector<Tensor> emit(std::uint32_t place, const FusedNorm& f, const Node& norm,
                           const Node& sum, const std::vector<ValueId>& operands) {
    GraphEmitter emitter(g_);
    emitter.insert_before(place);
    std::vector<Tensor> in;
    in.reserve(operands.size());
    for (ValueId v : operands) in.push_back(emitter.handle(v));
    Where where = norm.where;
    where.pass = "fuse-norm";
    where.reason = "one pass over the rows";
    report_.changed = true;
    report_.remarks.push_back({norm.identity(), RemarkKind::NormFused});
    std::vector<Tensor> out = emitter.emit({f.fused, norm.attrs}, in, where);
    const std::string members = f.is_gradient ? norm.identity() + ", " + sum.identity()
                                              : sum.identity() + ", " + norm.identity();
    g_.set_members(out[0].id().node, members);
    return out;
  }

  void forward(std::uint32_t n, const FusedNorm& f) {
    const Node norm = g_.node(n);
    const std::uint32_t s = norm.in[0].node;
    const Node sum = g_.node(s);
    if (!is_plain_sum(g_, sum)) return leave(norm, RemarkKind::NormOfNoSum);
    if (std::count(norm.in.begin(), norm.in.end(), ValueId{s, 0}) > 1)
      return leave(norm, RemarkKind::NormOfOwnSum);
    if (!readers_follow(s, n, n)) return leave(norm, RemarkKind::NormOfEarlySum);
    std::vector<ValueId> operands = {sum.in[0], sum.in[1]};
    operands.insert(operands.end(), norm.in.begin() + 1, norm.in.end());
    const auto out = emit(n, f, norm, sum, operands);
    for (std::uint32_t i = 0; i < norm.out.size(); ++i) g_.replace_uses({n, i}, out[i].id());
    g_.replace_uses({s, 0}, out.back().id());
  }

  void gradient(std::uint32_t n, const FusedNorm& f) {
    const Node norm = g_.node(n);
    if (g_.use_count({n, 0}) != 1) return leave(norm, RemarkKind::NormGradientShared);
    for (std::uint32_t s : g_.readers({n, 0})) {
      const Node sum = g_.node(s);
      if (!is_plain_sum(g_, sum)) continue;
      const int i = sum.in[0] == ValueId{n, 0} ? 0 : 1;
      const ValueId other = sum.in[1 - i];
      if (sum.in[i] != ValueId{n, 0} || other.node == n || !readers_follow(n, s, s)) continue;
      std::vector<ValueId> operands = {other};
      operands.insert(operands.end(), norm.in.begin(), norm.in.end());
      const auto out = emit(s, f, norm, sum, operands);
      g_.replace_uses({s, 0}, out[0].id());
      for (std::uint32_t k = 1; k < norm.out.size(); ++k) g_.replace_uses({n, k}, out[k].id());
      note_taken_in(g_, n, out[0].id().node);
      return;
    }
    leave(norm, RemarkKind::NormGradientAlone);
  }

  void leave(const Node& norm, RemarkKind why) {
    report_.remarks.push_back({norm.identity(), why});
  }

  Graph& g_;
  PassReport report_;
};

PassReport run(Graph& g, const PassContext&) { return Fusing(g).run(); }

}  // namespace

const Pass fuse_norm{"fuse-norm",
                     "residual additions join the norms beside them",
                     Form::Differentiated,
                     std::nullopt,
                     true,
                     run};

}  // namespace aloft
