#include "parity/case_runs.h"

#include <algorithm>
#include <functional>

#include "autodiff/differentiate.h"
#include "frontend/eager.h"
#include "frontend/programs.h"
#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/constant.h"
#include "ops/evaluate.h"
#include "ops/graph_emitter.h"
#include "ops/reduce.h"
#include "parity/op_builders.h"

namespace aloft::parity {

Case::Case(const Fixture& fixture, const Json& c) : info(c) {
  const std::string prefix = c.at("name").get<std::string>() + "/";
  for (const auto& [name, array] : fixture.arrays)
    if (name.starts_with(prefix)) arrays.emplace(name.substr(prefix.size()), array);
  for (const std::string name : c.at("inputs")) operands.push_back("in." + name);
  for (const std::string name : c.at("outputs"))
    if (arrays.contains("dy." + name)) operands.push_back("dy." + name);
}

namespace {

using Results = std::vector<std::pair<std::string, Tensor>>;
using Gradients = std::function<std::vector<Tensor>(const Tensor& target, const Tensor& seed,
                                                    std::span<const Tensor> wrt)>;

// The case's program: "out.y" and "grad.x" of sum over outputs <output, cotangent>.
Results emit_case(const Case& c, const std::vector<Tensor>& operands, const Gradients& gradients) {
  Named in, cotangents;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string& name = c.operands[i];
    if (name.starts_with("in."))
      in[name.substr(3)] = operands[i];
    else
      cotangents[name.substr(3)] = operands[i];
  }
  const std::string op = c.info.at("op");
  Named out;
  if (c.info.value("direct", false)) {
    const auto count = static_cast<std::ptrdiff_t>(c.info.at("inputs").size());
    const std::vector<Tensor> inputs(operands.begin(), operands.begin() + count);
    out["y"] = call_op(op, c.info.at("attrs"), inputs);
  } else {
    out = op_builders().at(op)(c.info.at("attrs"), in);
  }
  Results results;
  for (const auto& [name, y] : out) results.emplace_back("out." + name, y);
  Tensor target;
  for (const auto& [name, dy] : cotangents) {
    const Tensor part = sum(mul(out.at(name), dy));
    target = target.is_defined() ? add(target, part) : part;
  }
  std::vector<Tensor> wrt;
  for (const std::string name : c.info.at("grads")) wrt.push_back(in.at(name));
  const auto grads = gradients(target, scalar_like(target, 1), wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i)
    results.emplace_back("grad." + c.info.at("grads")[i].get<std::string>(), grads[i]);
  return results;
}

}  // namespace

Arrays run_in_double(const Case& c) {
  Graph graph;
  GraphEmitter emitter(graph);
  EmitterScope scope(emitter);
  std::map<Name, HostArray> values;
  std::vector<Tensor> operands;
  for (const std::string& name : c.operands) {
    HostArray a = c.arrays.at(name);
    if (is_float(a.dtype)) a.dtype = DType::F64;
    operands.push_back(emitter.handle(graph.add_input(name, {a.dtype, Shape::of(a.shape)})));
    values[name] = std::move(a);
  }
  const auto differentiated = [&](const Tensor& y, const Tensor& seed,
                                  std::span<const Tensor> wrt) {
    auto grads = differentiate(graph, emitter, y, seed, wrt);
    for (std::size_t i = 0; i < wrt.size(); ++i)  // undefined: y does not depend on it
      if (!grads[i].is_defined()) grads[i] = broadcast_like(scalar_like(wrt[i], 0), wrt[i]);
    return grads;
  };
  for (const auto& [name, t] : emit_case(c, operands, differentiated))
    graph.set_output(name, t.id());
  Arrays results;
  for (auto& [name, array] : interpret(graph, values).outputs) results[name.str()] = array;
  return results;
}

namespace {
std::vector<Tensor> recorded_gradients(const Tensor& y, const Tensor& seed,
                                       std::span<const Tensor> wrt) {
  return y.emitter()->gradients(y, seed, wrt, current_where());
}

}  // namespace

// In the fixture's own types.
Arrays run_compiled(const Case& c) {
  Programs programs;
  std::vector<InputSpec> inputs;
  for (const std::string& name : c.operands) {
    const HostArray& a = c.arrays.at(name);
    inputs.push_back({name, {a.dtype, Shape::of(a.shape)}});
  }
  Arrays results;
  programs.add("case", inputs, [&](const std::vector<Tensor>& operands) {
    const Results r = emit_case(c, operands, recorded_gradients);
    for (const auto& [name, t] : r)
      results[name] = HostArray::zeros(t.dtype(), c.arrays.at(name).shape);
    return r;
  });
  programs.finish();
  for (const std::string& name : c.operands)
    store_bytes(c.arrays.at(name), programs.input<std::byte>("case", name).write().data());
  programs.run(programs.find("case"), {});
  for (auto& [name, array] : results)
    load_bytes(array, programs.output<std::byte>("case", name).read().data());
  return results;
}

Arrays run_eagerly(const Case& c) {
  std::vector<Tensor> operands;
  for (const std::string& name : c.operands) {
    const HostArray& a = c.arrays.at(name);
    const auto& v = a.values;
    operands.push_back(is_float(a.dtype) ? from_floats({v.begin(), v.end()}, Shape::of(a.shape))
                                         : from_ints({v.begin(), v.end()}, Shape::of(a.shape)));
  }
  Arrays results;
  for (const auto& [name, t] : emit_case(c, operands, recorded_gradients)) {
    HostArray a = HostArray::zeros(t.dtype(), c.arrays.at(name).shape);
    const std::vector<double> v = t.to_vector();
    a.values.assign(v.begin(), v.end());
    results.emplace(name, std::move(a));
  }
  return results;
}

std::string test_name(const Json& info) {
  std::string name = info.at("name");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace aloft::parity
