// measure-layers: puts beside what each layer computes in f32 the same in the low types that
// somebody asks about, and the distance between the two.
//
//   %2 = linear(%0, %1) path="fc" policy="O0"      %3 = cast(%0) {to=bf16}
//   measure "O2:bf16"                        ->    %4 = cast(%1) {to=bf16}
//   return loss=%2                                 %5 = linear(%3, %4) path="fc" policy="O2:bf16"
//                                                  ... the norm of %5 - %2, over that of %2,
//                                                  the mean over the examples taken off both
//                                                  return loss=%2 "error:fc:forward:bf16"=%11
//
// A layer is what one module computes between its children (Where::path); its forward and backward
// nodes are replayed together through a CastingEmitter, so that types are decided as training
// decides them and the gradients are those of the values that were rounded. What comes from outside
// of the layer comes from the f32 program, rounded once: the distance is the layer's own, not that
// of what lies before it. Forward it is held against what differs between examples: a number that
// they share tells nothing, and hides that its rounding takes the rest away (1000.3 and 1000.7 are
// one number in bf16). An error is the largest over the values that leave the layer in a phase:
// infinite or NaN where the type overflows. Nothing is asked: nothing is done. Left alone: losses,
// the update, what no policy governs.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "graph/graph.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/graph_emitter.h"
#include "ops/norm.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "passes/casting_emitter.h"
#include "passes/layer_error_names.h"
#include "passes/pass.h"

namespace aloft {
namespace {

using Key = std::pair<Name, Phase>;

class Measuring {
 public:
  Measuring(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), plain_(graph) {}

  void run() {
    const std::vector<std::uint32_t> nodes(graph_.order().begin(), graph_.order().end());
    for (std::uint32_t n : nodes)
      if (is_of_layer(n)) find_leaving(n);
    for (const Policy& policy : graph_.measured()) in_type(policy, nodes);
  }

 private:
  bool is_of_layer(std::uint32_t n) const {
    const Node& node = graph_.node(n);
    const OpDef* op = find_op(node.op);
    return op && !op->is_loss && node.where.policy && node.where.phase != Phase::Update;
  }
  Key key_of(std::uint32_t n) const {
    return {graph_.node(n).where.path, graph_.node(n).where.phase};
  }

  // Values that somebody outside of the layer reads, be it a gradient of the layer's. What another
  // phase keeps of it is no result.
  void find_leaving(std::uint32_t n) {
    const Node& node = graph_.node(n);
    for (std::uint32_t i = 0; i < node.out.size(); ++i) {
      if (node.out[i].dtype != DType::F32) continue;
      for (const Use& use : graph_.uses({n, i}))
        if (use.by != Use::By::Tap && !(use.by == Use::By::Node && is_inside(node, use.node)))
          leaving_.insert({n, i});
    }
  }
  bool is_inside(const Node& node, std::uint32_t reader) const {
    const Where &from = node.where, &to = graph_.node(reader).where;
    const bool is_kept = from.phase == Phase::Forward && to.phase == Phase::Backward;
    return is_kept || (is_of_layer(reader) && to.path == from.path);
  }

  void in_type(const Policy& policy, const std::vector<std::uint32_t>& nodes) {
    CastingEmitter casting(plain_, context_.capability, taker(context_));
    const DType low = policy.recipe().low;
    rounded_.clear();
    shadows_.clear();
    std::map<Key, Tensor> errors;
    for (std::size_t at = 0; at < nodes.size(); ++at) {
      const std::uint32_t n = nodes[at];
      if (!is_of_layer(n)) continue;
      plain_.insert_before(at + 1 < nodes.size() ? std::optional(nodes[at + 1]) : std::nullopt);
      const Node node = graph_.node(n);  // a copy: emitting moves the graph's nodes
      Where where = node.where;
      where.policy = policy;
      where.pass = "measure-layers";
      std::vector<Tensor> in;
      for (ValueId v : node.in) in.push_back(operand(casting, v, where, low));
      EmitterScope emitter(casting);
      Scope scope(where);
      const std::vector<Tensor> out = casting.emit({node.op, node.attrs, node.form}, in, where);
      for (std::uint32_t i = 0; i < out.size(); ++i) {
        shadows_[{node.where.path, {n, i}}] = out[i];
        if (leaving_.contains({n, i})) take_error(errors[key_of(n)], {n, i}, out[i]);
      }
    }
    plain_.insert_before(std::nullopt);
    for (const auto& [key, error] : errors)
      graph_.set_output(layer_error_name(key.first.str(), key.second, low), error.id(),
                        OutputKind::Watch);
  }

  // What the layer's own nodes made; else the f32 program's value, an activation rounded.
  Tensor operand(CastingEmitter& casting, ValueId v, const Where& where, DType low) {
    if (const auto it = shadows_.find({where.path, v}); it != shadows_.end()) return it->second;
    const Node& from = graph_.node(v.node);
    const bool is_kept = from.op == Name("state") || from.op == Name("full") || from.in.empty();
    if (graph_.type(v).dtype != DType::F32 || is_kept) return casting.handle(v);
    const auto [it, is_new] = rounded_.emplace(v, Tensor());
    if (is_new) {
      EmitterScope emitter(plain_);
      Where w = where;
      w.policy = {};
      Scope scope(w);
      it->second = cast(plain_.handle(v), low);
    }
    return casting.handle(it->second.id());
  }

  void take_error(Tensor& largest, ValueId wide, const Tensor& low) {
    EmitterScope emitter(plain_);
    Where where = current_where();
    where.policy = {};
    Scope scope(where);
    constexpr double kTiny = 1e-30;  // nothing at all is no error
    Tensor exact = plain_.handle(wide);
    Tensor off = cast(plain_.handle(low.id()), DType::F32) - exact;
    if (where.phase == Phase::Forward) {
      exact = without_mean(exact);
      off = without_mean(off);
    }
    const Tensor error = norm(off) / maximum(norm(exact), kTiny);
    largest = largest.is_defined() ? maximum(largest, error) : error;
  }

  // What differs along the first axis: from example to example.
  static Tensor without_mean(const Tensor& t) {
    if (t.shape().rank() == 0 || t.shape()[0].max() < 2) return t;
    return t - mean(t, {0}, true);
  }

  Graph& graph_;
  const PassContext& context_;
  GraphEmitter plain_;
  std::set<ValueId> leaving_;
  std::map<std::pair<Name, ValueId>, Tensor> shadows_;
  std::map<ValueId, Tensor> rounded_;
};

PassReport run(Graph& graph, const PassContext& context) {
  const bool is_done = std::ranges::any_of(graph.outputs(), [](const GraphOutput& o) {
    return parse_layer_error(o.name.str()).has_value();
  });
  if (graph.measured().empty() || is_done) return {};
  const std::uint32_t before = graph.capacity();
  Measuring(graph, context).run();
  return {graph.capacity() != before};
}

}  // namespace

const Pass measure_layers{"measure-layers",
                          "each layer in low types beside f32, and how far it is from there",
                          Form::Differentiated,
                          std::nullopt,
                          true,
                          run};

}  // namespace aloft
