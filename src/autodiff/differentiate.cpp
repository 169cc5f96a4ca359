#include "autodiff/differentiate.h"

#include <map>
#include <set>

#include "autodiff/history.h"
#include "base/error.h"
#include "ops/binary.h"
#include "ops/op.h"

namespace aloft {
namespace {

class Sweep {
 public:
  Sweep(const Graph& graph, Emitter& emitter, std::span<const Tensor> wrt, const Lookout& lookout,
        std::span<GradientView> views)
      : graph_(graph), emitter_(emitter), lookout_(lookout) {
    for (GradientView& view : views)
      if (view.through) parts_[view.value].push_back({&view, true});
    for (const Tensor& t : wrt) active_.insert(t.id());
    active_.insert(lookout.values.begin(), lookout.values.end());
  }

  void seed(const Tensor& value, const Tensor& cotangent) { accumulate(value.id(), cotangent); }

  // Goes backwards over `nodes`, which are in execution order.
  void run(const std::vector<std::uint32_t>& nodes) {
    for (std::uint32_t n : nodes) {
      mark(n);
      share_parts(n);
    }
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) visit(*it);
  }

  Tensor cotangent(ValueId v) const {
    const auto it = cotangents_.find(v);
    return it == cotangents_.end() ? Tensor() : it->second;
  }

 private:
  // A value is active when it depends on one of `wrt` through ops that have a gradient.
  void mark(std::uint32_t n) {
    const Node& node = graph_.node(n);
    const OpDef* op = find_op(node.op);
    if (!op || op->gradient == OpDef::Gradient::None) return;
    bool depends = false;
    for (ValueId v : node.in) depends |= active_.contains(v);
    if (!depends) return;
    for (std::uint32_t i = 0; i < node.out.size(); ++i)
      if (is_float(node.out[i].dtype)) active_.insert({n, i});
  }

  // As much of a value's cotangent as comes through the module that a view names.
  struct Part {
    GradientView* view;
    bool is_shown;                // the view's value; else a cast that stands for it
    int inside = 0, outside = 0;  // cotangents that come through the module, and others
    Tensor seen = {};  // where it is a value of its own: one cotangent, or the sum so far
  };

  // A cast that a policy inserts stands in the module that first asks for the type, and serves all
  // others that read the value in it: what comes back through it comes through its readers.
  static bool is_shared_cast(const Node& node) {
    return node.op == Name("cast") && node.where.reason;
  }

  void share_parts(std::uint32_t n) {
    const Node& node = graph_.node(n);
    if (parts_.empty() || !is_shared_cast(node)) return;
    const auto of_value = parts_.find(node.in[0]);
    if (of_value == parts_.end()) return;
    std::vector<Part> shared;
    for (const Part& part : of_value->second) shared.push_back({part.view, false});
    std::vector<Part>& parts = parts_[{n, 0}];
    parts.insert(parts.end(), shared.begin(), shared.end());
  }

  void visit(std::uint32_t n) {
    const Node node = graph_.node(n);  // a copy: emitting may move the graph's nodes
    std::vector<Tensor> in, out, cotangents;
    bool reached = false, wanted = false;
    std::vector<bool> needed;
    for (std::uint32_t i = 0; i < node.out.size(); ++i) {
      if (lookout_.values.contains({n, i})) look_at({n, i}, node);
      cotangents.push_back(active_.contains({n, i}) ? cotangent({n, i}) : Tensor());
      reached |= cotangents.back().is_defined();
    }
    if (!reached || !passes_gradient(node)) return;
    for (ValueId v : node.in) {
      needed.push_back(active_.contains(v));
      wanted = wanted || needed.back();
      in.push_back(emitter_.handle(v));
    }
    if (!wanted) return;
    for (std::uint32_t i = 0; i < node.out.size(); ++i) out.push_back(emitter_.handle({n, i}));

    const OpDef& op = op_named(node.op);
    Where where = where_of_gradients(node.where);
    where.reason = {};
    // A loss is f32, and so are the steps of its body: no policy counts its rows in f16.
    if (op.is_loss && op.gradient == OpDef::Gradient::FromBody) where.policy = {};
    Scope scope(where);
    if (op.gradient == OpDef::Gradient::FromBody) {
      through_body(op, node, in, cotangents);
      return;
    }
    Vjp vjp(in, out, cotangents, needed);
    op.vjp(node.attrs, vjp);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (vjp.given()[i].is_defined() && needed[i]) {
        ensure(vjp.given()[i].shape() == in[i].shape(),
               "a cotangent has its operand's shape: " + node.op.str());
        accumulate(node.in[i], vjp.given()[i], node.where.path.str(),
                   is_shared_cast(node) ? std::optional(ValueId{n, 0}) : std::nullopt);
      }
  }

  void through_body(const OpDef& op, const Node& node, const std::vector<Tensor>& in,
                    const std::vector<Tensor>& cotangents) {
    const std::uint32_t first = graph_.capacity();
    const std::vector<Tensor> results = op.body(node.attrs, in);
    std::vector<std::uint32_t> added;
    for (std::uint32_t n = first; n < graph_.capacity(); ++n) added.push_back(n);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (cotangents[i].is_defined()) accumulate(results[i].id(), cotangents[i]);
    run(added);
  }

  // The cotangent is complete: whatever reads the value comes behind it.
  void look_at(ValueId v, const Node& node) {
    const auto it = cotangents_.find(v);
    if (it == cotangents_.end()) return;
    Scope scope(where_of_gradients(node.where));
    it->second = lookout_.see(v, it->second);
  }

  // `path`: of the module whose op gives the cotangent; `cast`: the shared cast that does.
  void accumulate(ValueId v, const Tensor& cotangent, const std::string& path = {},
                  std::optional<ValueId> cast = {}) {
    auto [it, is_new] = cotangents_.emplace(v, cotangent);
    const Tensor before = is_new ? Tensor() : it->second;
    if (!is_new) it->second = add(it->second, cotangent);
    const auto parts = parts_.find(v);
    if (parts == parts_.end()) return;
    for (Part& part : parts->second) {
      const Part* within = cast ? part_of(*cast, part.view) : nullptr;
      const bool is_inside = within ? within->inside > 0 : is_within(path, *part.view->through);
      const bool is_outside = within ? within->outside > 0 : !is_inside;
      if (is_outside) ++part.outside;
      if (is_inside && is_outside)
        note_part(part, Tensor(), within->seen, Tensor());
      else if (is_inside)
        note_part(part, before, cotangent, it->second);
      if (part.is_shown) part.view->gradient = part.seen;
    }
  }

  static bool is_within(const std::string& path, const std::string& module) {
    return module.empty() || path == module || path.starts_with(module + ".");
  }

  const Part* part_of(ValueId v, const GradientView* view) const {
    const auto parts = parts_.find(v);
    if (parts == parts_.end()) return nullptr;
    for (const Part& part : parts->second)
      if (part.view == view && !part.is_shown) return &part;
    return nullptr;
  }

  // A cotangent that comes through the module: the value's before it, itself, and their sum.
  static void note_part(Part& part, const Tensor& before, const Tensor& cotangent,
                        const Tensor& sum) {
    Tensor& seen = part.seen;
    if (part.inside++ == 0)
      seen = cotangent;
    else
      seen = seen.is_defined() && before.is_defined() && seen.id() == before.id() ? sum : Tensor();
  }

  const Graph& graph_;
  Emitter& emitter_;
  const Lookout& lookout_;
  std::set<ValueId> active_;
  std::map<ValueId, Tensor> cotangents_;
  std::map<ValueId, std::vector<Part>> parts_;
};

}  // namespace

Where where_of_gradients(Where where) {
  where.phase = Phase::Backward;
  where.pass = "differentiate";
  return where;
}

std::vector<Tensor> differentiate(const Graph& graph, Emitter& emitter, const Tensor& target,
                                  const Tensor& seed, std::span<const Tensor> wrt,
                                  const Lookout& lookout, std::span<GradientView> views) {
  if (!is_float(target.dtype()))
    throw UserError("E0311", "only a floating-point tensor can be differentiated")
        .saw(target.type().str());
  EmitterScope scope(emitter);
  // A copy: the gradients may be emitted into this very graph.
  const std::vector<std::uint32_t> nodes(graph.order().begin(), graph.order().end());
  Sweep sweep(graph, emitter, wrt, lookout, views);
  sweep.seed(target, seed);
  sweep.run(nodes);
  std::vector<Tensor> gradients;
  for (const Tensor& t : wrt) gradients.push_back(sweep.cotangent(t.id()));
  for (GradientView& view : views)
    if (!view.through) view.gradient = sweep.cotangent(view.value);
  return gradients;
}

}  // namespace aloft
