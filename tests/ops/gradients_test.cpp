// Every op's gradient against central differences of its meaning, in double. The scalar that is
// differentiated is sum(cotangent * output) with random cotangents. Small operands are checked
// element by element, large ones along random directions.
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/differentiate.h"
#include "ops/evaluate.h"
#include "ops/graph_emitter.h"
#include "ops/sample_inputs.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

using testing::case_text;
using testing::make_inputs;
using testing::samples_of;

constexpr std::int64_t kElementwiseLimit = 40;
constexpr double kStep = 1e-5;

HostArray random_like(const HostArray& a, std::uint64_t identity) {
  HostArray r = a;
  for (std::int64_t i = 0; i < r.numel(); ++i)
    r[i] = scalar::normal(scalar::RandomKey{99, 0, 0, identity}, i);
  return r;
}

// sum over outputs of <cotangent, output>.
double objective(const OpDef& op, const Attrs& attrs, const std::vector<HostArray>& in,
                 const std::vector<HostArray>& cotangents) {
  const auto out = evaluate_op(op, attrs, in);
  double sum = 0;
  for (std::size_t o = 0; o < out.size(); ++o)
    if (is_float(out[o].dtype))
      for (std::int64_t i = 0; i < out[o].numel(); ++i) sum += out[o][i] * cotangents[o][i];
  return sum;
}

// The op's own gradients for the operands, through differentiate() and the interpreter.
std::vector<HostArray> gradients(const OpDef& op, const Attrs& attrs,
                                 const std::vector<HostArray>& in,
                                 const std::vector<HostArray>& cotangents) {
  Graph graph;
  GraphEmitter emitter(graph);
  EmitterScope scope(emitter);
  std::map<Name, HostArray> values;
  std::vector<Tensor> operands, wrt;
  const auto input = [&](Name name, const HostArray& a) {
    values[name] = a;
    return emitter.handle(graph.add_input(name, {a.dtype, Shape::of(a.shape)}));
  };
  for (std::size_t i = 0; i < in.size(); ++i)
    operands.push_back(input("in" + std::to_string(i), in[i]));
  const std::vector<Tensor> out = emitter.emit({op.name, attrs}, operands, {});
  std::vector<HostArray> total;
  for (const HostArray& a : in) total.push_back(HostArray::zeros(a.dtype, a.shape));
  for (std::size_t o = 0; o < out.size(); ++o) {
    if (!is_float(out[o].dtype())) continue;
    const Tensor seed = input("seed" + std::to_string(o), cotangents[o]);
    const auto grads = differentiate(graph, emitter, out[o], seed, operands);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (grads[i].is_defined())
        graph.set_output("g" + std::to_string(o) + "_" + std::to_string(i), grads[i].id());
  }
  const auto results = interpret(graph, values).outputs;
  for (const auto& [name, g] : results) {
    const auto i = std::stoul(name.str().substr(name.str().find('_') + 1));
    for (std::int64_t e = 0; e < g.numel(); ++e) total[i][e] += g[e];
  }
  return total;
}

void check_direction(const OpDef& op, const Attrs& attrs, std::vector<HostArray> in,
                     const std::vector<HostArray>& cotangents, std::size_t operand,
                     const HostArray& gradient, const HostArray& direction,
                     const std::string& what) {
  double expected = 0, magnitude = 0;
  for (std::int64_t i = 0; i < gradient.numel(); ++i) {
    expected += gradient[i] * direction[i];
    magnitude += std::abs(gradient[i] * direction[i]);
  }
  const HostArray base = in[operand];
  double side[2];
  for (int s = 0; s < 2; ++s) {
    for (std::int64_t i = 0; i < base.numel(); ++i)
      in[operand][i] = base[i] + (s ? -kStep : kStep) * direction[i];
    side[s] = objective(op, attrs, in, cotangents);
  }
  const double numeric = (side[0] - side[1]) / (2 * kStep);
  const double noise = 1e-10 * (std::abs(side[0]) + std::abs(side[1]));
  // The step's square times the third derivative, which the factor stands for; and the noise.
  EXPECT_NEAR(expected, numeric, 2e-6 * (1 + magnitude) + noise) << what << " operand " << operand;
}

void check_sample(const OpDef& op, const Sample& sample) {
  const auto in = make_inputs(sample, DType::F64, 7);
  const std::string what = case_text(op, sample, in);
  std::vector<HostArray> cotangents;
  for (const HostArray& out : evaluate_op(op, sample.attrs, in))
    cotangents.push_back(random_like(out, 1000 + cotangents.size()));
  const auto grads = gradients(op, sample.attrs, in, cotangents);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].dtype != DType::F64) continue;
    if (in[i].numel() <= kElementwiseLimit) {
      for (std::int64_t e = 0; e < in[i].numel(); ++e) {
        HostArray direction = HostArray::zeros(DType::F64, in[i].shape);
        direction[e] = 1;
        check_direction(op, sample.attrs, in, cotangents, i, grads[i], direction, what);
      }
    } else {
      for (std::uint64_t d = 0; d < 3; ++d)
        check_direction(op, sample.attrs, in, cotangents, i, grads[i], random_like(in[i], 2000 + d),
                        what);
    }
  }
}

class Gradients : public ::testing::TestWithParam<Name> {};

TEST_P(Gradients, MatchCentralDifferences) {
  const OpDef& op = op_named(GetParam());
  int checked = 0;
  for (const Sample& sample : samples_of(op))
    if (sample.gradient) {
      check_sample(op, sample);
      ++checked;
    }
  EXPECT_GT(checked, 0) << "no sample of " << op.name.str() << " checks its gradient";
}

std::vector<Name> ops_with_gradients() {
  std::vector<Name> names;
  for (const OpDef& op : op_table())
    if (op.gradient != OpDef::Gradient::None) names.push_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradients, ::testing::ValuesIn(ops_with_gradients()),
                         [](const auto& info) { return info.param.str(); });

TEST(Gradients, OfGradients) {
  // d2/dx2 of sum(tanh(x)^2), against differences of the first derivative.
  Graph graph;
  GraphEmitter emitter(graph);
  EmitterScope scope(emitter);
  const Tensor x = emitter.handle(graph.add_input("x", {DType::F64, {5}}));
  const Tensor seed = emitter.handle(graph.add_input("seed", {DType::F64, {5}}));
  const Tensor t = emitter.emit({"tanh", {}}, std::vector{x}, {})[0];
  const Tensor y = emitter.emit({"square", {}}, std::vector{t}, {})[0];
  const Tensor dx = differentiate(graph, emitter, y, seed, std::vector{x})[0];
  const Tensor ddx = differentiate(graph, emitter, dx, seed, std::vector{x})[0];
  graph.set_output("dx", dx.id());
  graph.set_output("ddx", ddx.id());
  std::map<Name, HostArray> values;
  values["x"] = {DType::F64, {5}, {-1.2, -0.3, 0.1, 0.7, 2.0}};
  values["seed"] = {DType::F64, {5}, {1, 1, 1, 1, 1}};
  const auto at = [&](double shift) {
    auto moved = values;
    for (HostNumber& v : moved["x"].values) v += shift;
    return interpret(graph, moved).outputs;
  };
  const auto plus = at(kStep), minus = at(-kStep), here = at(0);
  // Values of at most 2 rounded to 2^-53, over 2e-5, and the step's square times a derivative.
  for (int i = 0; i < 5; ++i)
    EXPECT_NEAR(here.at("ddx")[i], (plus.at("dx")[i] - minus.at("dx")[i]) / (2 * kStep), 1e-7);
}

}  // namespace
}  // namespace aloft
