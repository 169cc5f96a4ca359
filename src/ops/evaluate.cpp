#include "ops/evaluate.h"

#include "base/error.h"
#include "ops/graph_emitter.h"

namespace aloft {

Dim bind_lengths(const Dim& d, const SymbolValues& values) {
  if (d.is_constant()) return d;
  const auto it = values.find(d.symbol());
  if (it == values.end())
    throw UserError("E0306", "the length " + d.symbol().str() + " has no value")
        .need("a value for every symbolic dimension of the inputs");
  if (it->second < 0 || it->second > d.bound())
    throw UserError("E0307", "the length " + d.symbol().str() + " is out of bounds")
        .saw(std::to_string(it->second))
        .need("0 to " + std::to_string(d.bound()));
  return Dim(d.times() * it->second);
}

Shape bind_lengths(const Shape& s, const SymbolValues& values) {
  Shape out;
  for (const Dim& d : s) out.dims().push_back(bind_lengths(d, values));
  return out;
}

TensorType bind_lengths(const TensorType& t, const SymbolValues& values) {
  return {t.dtype, bind_lengths(t.shape, values)};
}

Attrs bind_lengths(const Attrs& attrs, const SymbolValues& values) {
  Attrs out = attrs;
  for (const auto& [name, value] : attrs.all())
    if (const Shape* s = std::get_if<Shape>(&value)) out.set(name, bind_lengths(*s, values));
  return out;
}

namespace {

std::vector<HostArray> evaluate_body(const OpDef& op, const Attrs& attrs,
                                     std::span<const HostArray> in, EvalRounding rounding) {
  Graph graph;
  GraphEmitter emitter(graph);
  EmitterScope scope(emitter);
  std::map<Name, HostArray> values;
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Name name = "in" + std::to_string(i);
    operands.push_back(
        emitter.handle(graph.add_input(name, {in[i].dtype, Shape::of(in[i].shape)})));
    values[name] = in[i];
  }
  const std::vector<Tensor> results = op.body(attrs, operands);
  for (std::size_t i = 0; i < results.size(); ++i)
    graph.set_output("out" + std::to_string(i), results[i].id());
  GraphValues all = interpret(graph, values, {}, rounding);
  std::vector<HostArray> out;
  for (std::size_t i = 0; i < results.size(); ++i)
    out.push_back(std::move(all.outputs.at("out" + std::to_string(i))));
  return out;
}

}  // namespace

std::vector<HostArray> evaluate_op(const OpDef& op, const Attrs& attrs,
                                   std::span<const HostArray> in, EvalRounding rounding) {
  std::vector<HostArray> out;
  if (op.eval) {
    std::vector<TensorType> types;
    for (const HostArray& a : in) types.push_back({a.dtype, Shape::of(a.shape)});
    for (const TensorType& t : infer_types(op, attrs, types, current_where()))
      out.push_back(HostArray::zeros(t.dtype, t.shape.max_extents()));
    EvalCall call{in, out};
    op.eval(attrs, call);
  } else {
    out = evaluate_body(op, attrs, in, rounding);
  }
  for (HostArray& a : out)
    if (rounding == EvalRounding::ToDType || !is_float(a.dtype)) round_to_dtype(a);
  return out;
}

GraphValues interpret(const Graph& graph, const std::map<Name, HostArray>& given,
                      const SymbolValues& symbols, EvalRounding rounding) {
  std::map<ValueId, HostArray> values;
  for (std::uint32_t n : graph.order()) {
    const Node& node = graph.node(n);
    if (node.op == Name("input") || node.op == Name("state")) {
      const bool is_state = node.op == Name("state");
      const Name name =
          is_state ? state_id(node) : Name(std::get<std::string>(*node.attrs.find("name")));
      const auto it = given.find(name);
      if (it == given.end()) throw UserError("E0308", "no value is given for '" + name.str() + "'");
      if (Shape::of(it->second.shape) != bind_lengths(node.out[0].shape, symbols))
        throw UserError("E0309", "'" + name.str() + "' has the wrong shape")
            .saw(Shape::of(it->second.shape).str())
            .need(node.out[0].str());
      values[{n, 0}] = it->second;
      continue;
    }
    std::vector<HostArray> in;
    for (ValueId v : node.in) in.push_back(values.at(v));
    std::vector<HostArray> out =
        evaluate_op(op_named(node.op), bind_lengths(node.attrs, symbols), in, rounding);
    for (std::uint32_t i = 0; i < out.size(); ++i) values[{n, i}] = std::move(out[i]);
  }
  GraphValues result;
  for (const GraphOutput& o : graph.outputs()) result.outputs[o.name] = values.at(o.value);
  for (const StateUpdate& u : graph.updates()) result.updates[u.id] = values.at(u.value);
  return result;
}

}  // namespace aloft
