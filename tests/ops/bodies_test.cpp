// Ops for which the processor has no kernel run through their bodies: the kernels of what those are
// made of, one after another, against the op's own meaning in double, in every float type.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backends/cpu/cpu_backend.h"
#include "ops/graph_emitter.h"
#include "ops/kernel_case.h"
#include "ops/kernel_run.h"
#include "ops/sample_inputs.h"

namespace aloft {
namespace {

using testing::Case;
using testing::case_text;
using testing::compare;
using testing::make_case;
using testing::run_kernel;
using testing::samples_of;
using testing::special_samples_of;

// What lies between a body's operands and its results.
struct Steps {
  int low_roundings = 0;  // results of a low type, the op's own among them
  double scale = 0;       // largest magnitude
};

std::vector<HostArray> run_body(const OpDef& op, const CallSpec& call,
                                const std::vector<HostArray>& in, Steps& steps);

std::vector<HostArray> run_call(const CallSpec& call, const std::vector<HostArray>& in,
                                Steps& steps) {
  const Choice choice = choose_kernel(cpu_backend(), call);
  if (!choice.kernel) return run_body(op_named(call.op), call, in, steps);
  const auto result = run_kernel(*choice.kernel, call, in, {.threads = 2});
  EXPECT_EQ(result.problem, "") << call.op.str();
  const bool rounds = op_named(call.op).fusion != Fusion::View;
  for (const HostArray& a : result.out) {
    steps.scale = testing::largest_magnitude(a, steps.scale);
    steps.low_roundings += rounds && is_low(a.dtype);
  }
  return result.out;
}

std::vector<HostArray> run_body(const OpDef& op, const CallSpec& call,
                                const std::vector<HostArray>& in, Steps& steps) {
  Graph graph;
  GraphEmitter emitter(graph);
  EmitterScope scope(emitter);
  std::map<ValueId, HostArray> values;
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < in.size(); ++i) {
    operands.push_back(emitter.handle(graph.add_input("in" + std::to_string(i), call.in[i])));
    values[operands.back().id()] = in[i];
  }
  const std::vector<Tensor> results = op.body(call.attrs, operands);
  for (const std::uint32_t n : graph.order()) {
    const Node& node = graph.node(n);
    if (node.op == Name("input")) continue;
    CallSpec step{node.op, node.attrs, {}, node.out};
    std::vector<HostArray> step_in;
    for (const ValueId v : node.in) {
      step.in.push_back(graph.type(v));
      step_in.push_back(values.at(v));
    }
    std::vector<HostArray> out = run_call(step, step_in, steps);
    for (std::uint32_t o = 0; o < out.size(); ++o) values[{n, o}] = std::move(out[o]);
  }
  std::vector<HostArray> out;
  for (const Tensor& t : results) out.push_back(values.at(t.id()));
  return out;
}

int check(const OpDef& op, const std::vector<Sample>& samples) {
  int ran = 0;
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const Sample& sample : samples) {
      const auto c = make_case(op, sample, dtype);
      if (!c || choose_kernel(cpu_backend(), c->call).kernel) continue;
      SCOPED_TRACE(case_text(op, sample, c->in));
      Steps steps{0, c->scale};
      const auto got = run_body(op, c->call, c->in, steps);
      EXPECT_EQ(got.size(), c->want.size());
      for (const HostArray& a : got) steps.low_roundings -= is_low(a.dtype);
      Sample rounded = sample;
      rounded.inner_roundings += std::max(0, steps.low_roundings);
      constexpr std::int64_t kLeast = 16;  // terms of the body may cancel
      for (std::size_t o = 0; o < got.size(); ++o)
        EXPECT_EQ(compare(got[o], c->want[o], std::max(c->lengths[o], kLeast), steps.scale, rounded,
                          dtype),
                  "")
            << "output " << o;
      ++ran;
    }
  return ran;
}

class Bodies : public ::testing::TestWithParam<Name> {};

TEST_P(Bodies, EqualTheMeaning) {
  const OpDef& op = op_named(GetParam());
  const int ran = check(op, samples_of(op));
  const bool has_kernels = !cpu_backend().candidates(op.name).empty();
  EXPECT_TRUE(ran > 0 || has_kernels) << "no sample was run";
}

TEST_P(Bodies, EqualTheMeaningOnSpecialValues) {
  const OpDef& op = op_named(GetParam());
  const auto special = special_samples_of(op);
  const bool has_kernels = !cpu_backend().candidates(op.name).empty();
  EXPECT_TRUE(check(op, special) > 0 || has_kernels || special.empty()) << "no sample was run";
}

std::vector<Name> ops_with_bodies() {
  std::vector<Name> names;
  for (const OpDef& op : op_table())
    if (op.body) names.push_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, Bodies, ::testing::ValuesIn(ops_with_bodies()),
                         [](const auto& info) { return info.param.str(); });

}  // namespace
}  // namespace aloft
