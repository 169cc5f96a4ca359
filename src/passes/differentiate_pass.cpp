// differentiate: replaces every `gradients` node by the backward nodes that compute it, emitted
// before it and through the precision decision once more, with phase backward (autodiff/ has the
// sweep itself and an example). One value is cast once to one type, by whichever phase first needs
// it, as in eager mode: a second gradient adds up what comes back through that one cast. Where a
// parameter is tapped, or what a call of a module takes or gives, the gradient is tapped with it.
#include <algorithm>
#include <map>

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "passes/casting_emitter.h"
#include "passes/pass.h"
#include "passes/tap_pattern.h"

namespace aloft {
namespace {

// Whether `reader` means the same with operands of type `given` in place of the value `v`.
bool takes(const Graph& graph, const Node& reader, ValueId v, const TensorType& given) {
  const OpDef* op = find_op(reader.op);
  if (op == nullptr) return true;  // a later request takes what it gets
  std::vector<TensorType> in;
  for (ValueId x : reader.in) in.push_back(x == v ? given : graph.type(x));
  try {
    return infer_types(*op, reader.attrs, in, reader.where) == reader.out;
  } catch (const UserError&) {
    return false;
  }
}

// The gradient `g` stands for `v` from now on. Its type is the backward phase's, which a recipe may
// set apart from the parameter's: a reader that was typed for the parameter's gets a cast. `exact`:
// all of them do, and one cast, as in eager mode.
void hand_over(Graph& graph, GraphEmitter& plain, ValueId v, const Tensor& g, bool exact) {
  const TensorType stated = graph.type(v), given = graph.type(g.id());
  if (exact) {
    graph.replace_uses(v, cast(plain.handle(g.id()), stated.dtype).id());
    return;
  }
  if (given != stated) {
    std::optional<ValueId> converted;
    for (std::uint32_t u : graph.readers(v)) {
      const Node reader = graph.node(u);
      if (takes(graph, reader, v, given)) continue;
      if (!converted) converted = cast(plain.handle(g.id()), stated.dtype).id();
      for (std::size_t k = 0; k < reader.in.size(); ++k)
        if (reader.in[k] == v) graph.set_input(u, static_cast<int>(k), *converted);
    }
  }
  graph.replace_uses(v, g.id());
}

// The gradients that taps show, and by which names; those that have one from a request before are
// not among them.
struct TappedGradients {
  std::vector<GradientView> views;
  std::vector<std::string> names;

  explicit TappedGradients(const Graph& graph) {
    std::map<std::string_view, ValueId> known;
    for (const GraphOutput& o : graph.outputs()) known.emplace(o.name.str(), o.value);
    for (const GraphOutput& o : graph.outputs()) {
      if (o.kind != OutputKind::Tap) continue;
      auto tap = gradient_of_tap(o.name.str());
      if (!tap || known.contains(tap->name)) continue;
      // Of a call that gives what it takes, such as a dropout of nothing, all comes through.
      if (tap->through)
        if (const auto given = known.find(output_of_call(o.name.str()));
            given != known.end() && given->second == o.value)
          tap->through.reset();
      views.push_back({o.value, std::move(tap->through)});
      names.push_back(std::move(tap->name));
    }
  }
  // The last value's first, as a backward pass comes to them.
  void show(Graph& graph) const {
    for (std::size_t i = views.size(); i-- > 0;)
      if (const Tensor& g = views[i].gradient; g.is_defined())
        graph.set_output(names[i], g.id(), OutputKind::Tap);
  }
};

void expand(Graph& graph, std::uint32_t n, GraphEmitter& plain, CastingEmitter& casting) {
  const Node node = graph.node(n);
  plain.insert_before(n);
  EmitterScope emitter_scope(casting);
  Scope scope(where_of_gradients(node.where));
  const Tensor target = casting.handle(node.in[0]);
  const Tensor seed = broadcast_like(cast(casting.handle(node.in[1]), target.dtype()), target);
  std::vector<Tensor> wrt;
  for (std::size_t i = 2; i < node.in.size(); ++i) wrt.push_back(casting.handle(node.in[i]));
  TappedGradients tapped(graph);
  const std::vector<Tensor> gradients =
      differentiate(graph, casting, target, seed, wrt, {}, tapped.views);
  tapped.show(graph);
  for (std::uint32_t i = 0; i < gradients.size(); ++i) {
    const Tensor g =
        gradients[i].is_defined() ? gradients[i] : full(wrt[i].shape(), 0.0, wrt[i].dtype());
    hand_over(graph, plain, {n, i}, g, node.attrs.find(kExactAttr) != nullptr);
  }
  graph.erase(n);
}

PassReport run(Graph& graph, const PassContext& context) {
  const std::vector<std::uint32_t> traced(graph.order().begin(), graph.order().end());
  const auto is_request = [&](std::uint32_t n) { return graph.node(n).op == Name("gradients"); };
  if (std::none_of(traced.begin(), traced.end(), is_request)) return {false};
  GraphEmitter plain(graph);
  CastingEmitter casting(plain, context.capability, taker(context));
  casting.record_decisions(context.decisions);
  // In order: a later gradient may go through an earlier one.
  for (std::uint32_t n : traced)
    if (is_request(n))
      expand(graph, n, plain, casting);
    else if (const auto same = casting.learn(graph, n))
      graph.replace_uses({n, 0}, *same);
  return {true};
}

}  // namespace

const Pass differentiate_pass{"differentiate",
                              "backward nodes for every requested gradient",
                              Form::Cast,
                              Form::Differentiated,
                              true,
                              run};

}  // namespace aloft
