// Lion and LAMB against their papers, written out line by line in double: the update op's meaning
// over 20 steps, and what a program trains with, eagerly and compiled.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/module.h"
#include "ops/binary.h"
#include "ops/evaluate.h"
#include "ops/reduce.h"
#include "ops/update.h"
#include "optim/lamb.h"
#include "optim/lion.h"
#include "scalar/philox.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using Vec = std::vector<double>;

constexpr int kSteps = 20;
constexpr double kLr = 0.0625, kDecay = 0.125;  // exact in fp32
constexpr std::int64_t kSizes[] = {35, 257};

// The gradients of a step, which fp32 holds; those of every fourth element are 0 at first.
Vec gradient(int tensor, int step) {
  Vec g;
  for (std::int64_t i = 0; i < kSizes[tensor]; ++i) {
    const double x = scalar::normal(
        scalar::RandomKey{3, static_cast<std::uint64_t>(step), 0, std::uint64_t(tensor)}, i);
    g.push_back(i % 4 == 0 && step < 2 ? 0.0 : static_cast<double>(static_cast<float>(x)));
  }
  return g;
}
Vec start(int tensor) {
  Vec p;
  for (std::int64_t i = 0; i < kSizes[tensor]; ++i)
    p.push_back(
        static_cast<float>(scalar::normal(scalar::RandomKey{5, 0, 0, std::uint64_t(tensor)}, i)));
  return p;
}

double norm(const Vec& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

struct State {
  Vec p, m, v;
};

// Chen et al. 2023, algorithm 2.
void lion_of_the_paper(State& s, const Vec& g, int, const optim::Lion& o) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double c = o.beta1 * s.m[i] + (1 - o.beta1) * g[i];
    const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
    s.p[i] = s.p[i] - o.lr * (sign + o.weight_decay * s.p[i]);
    s.m[i] = o.beta2 * s.m[i] + (1 - o.beta2) * g[i];
  }
}

// You et al. 2019, algorithm 2, with phi(x) = x.
void lamb_of_the_paper(State& s, const Vec& g, int t, const optim::Lamb& o) {
  Vec u(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    s.m[i] = o.beta1 * s.m[i] + (1 - o.beta1) * g[i];
    s.v[i] = o.beta2 * s.v[i] + (1 - o.beta2) * g[i] * g[i];
    const double m = s.m[i] / (1 - std::pow(o.beta1, t)), v = s.v[i] / (1 - std::pow(o.beta2, t));
    u[i] = m / (std::sqrt(v) + o.eps) + o.weight_decay * s.p[i];
  }
  const double weights = norm(s.p), update = norm(u);
  const double ratio = weights > 0 && update > 0 ? weights / update : 1;
  for (std::size_t i = 0; i < g.size(); ++i) s.p[i] -= o.lr * ratio * u[i];
}

// Parameters behind the last step.
template <class O, class Rule>
std::vector<Vec> of_the_paper(const O& options, const Rule& rule) {
  std::vector<Vec> all;
  for (int tensor = 0; tensor < 2; ++tensor) {
    State s{start(tensor), Vec(kSizes[tensor]), Vec(kSizes[tensor])};
    for (int t = 1; t <= kSteps; ++t) rule(s, gradient(tensor, t - 1), t, options);
    all.push_back(s.p);
  }
  return all;
}

// The op's meaning, step by step: its results are the next step's operands.
std::vector<Vec> of_the_op(const OptimizerSpec& spec) {
  const optim::OptimizerKind& kind = *spec.rule.kind;
  const auto array = [](DType t, Vec values, bool is_scalar = false) {
    const auto n = static_cast<std::int64_t>(values.size());
    HostArray a = HostArray::zeros(t, is_scalar ? std::vector<std::int64_t>() : std::vector{n});
    a.values.assign(values.begin(), values.end());
    return a;
  };
  const std::size_t states = kind.formula.states.size();
  std::vector<HostArray> kept;  // parameters, then states
  for (int tensor = 0; tensor < 2; ++tensor) kept.push_back(array(DType::F32, start(tensor)));
  for (std::size_t w = 0; w < states; ++w)
    for (std::int64_t n : kSizes) kept.push_back(array(DType::F32, Vec(n)));
  const Attrs attrs =
      update_attrs_of(spec.rule, {.decay = {1, 1}, .weight_decay = spec.weight_decay}, 2);
  for (int t = 0; t < kSteps; ++t) {
    std::vector<HostArray> in = {array(DType::F32, {spec.lr}, true), array(DType::F32, {1}, true),
                                 array(DType::I32, {1}, true),
                                 array(DType::I64, {double(t)}, true)};
    in.insert(in.end(), kept.begin(), kept.begin() + 2);
    for (int tensor = 0; tensor < 2; ++tensor) in.push_back(array(DType::F32, gradient(tensor, t)));
    in.insert(in.end(), kept.begin() + 2, kept.end());
    if (kind.formula.sums > 0)
      in.push_back(evaluate_op(op_named(sums_op_name(kind)), attrs, in)[0]);
    kept = evaluate_op(op_named(update_op_name(kind)), attrs, in);
  }
  std::vector<Vec> all;
  for (int tensor = 0; tensor < 2; ++tensor)
    all.emplace_back(kept[tensor].values.begin(), kept[tensor].values.end());
  return all;
}

struct Weights : nn::Module {
  std::vector<VariablePtr> all;
  Weights() {
    for (int t = 0; t < 2; ++t)
      all.push_back(
          add_parameter("w" + std::to_string(t), {kSizes[t]}, [&](float* to, std::int64_t) {
            const Vec values = start(t);
            std::copy(values.begin(), values.end(), to);
          }));
  }
  // Its gradients are the given ones.
  Tensor operator()(const Tensor& a, const Tensor& b) const {
    return sum(use(all[0]) * a) + sum(use(all[1]) * b);
  }
};

std::vector<Vec> of_a_program(const OptimizerSpec& spec, bool is_compiled) {
  use_device(cpu_device());
  Weights weights;
  auto trained = amp::initialize(weights, spec, "O0");
  const auto step = [&](const Tensor& a, const Tensor& b) {
    return minimize(trained.first(a, b), trained.second);
  };
  auto compiled = compile(step, {.partial_batches = false});
  for (int t = 0; t < kSteps; ++t) {
    const auto g = [&](int tensor) {
      const Vec values = gradient(tensor, t);
      return from_floats({values.begin(), values.end()}, {kSizes[tensor]});
    };
    is_compiled ? compiled(g(0), g(1)) : step(g(0), g(1));
  }
  std::vector<Vec> all;
  for (const VariablePtr& v : weights.all) {
    const std::vector<float> values = v->to_floats();
    all.emplace_back(values.begin(), values.end());
  }
  return all;
}

void expect_near(const std::vector<Vec>& got, const std::vector<Vec>& want, double relative) {
  for (std::size_t t = 0; t < want.size(); ++t)
    for (std::size_t i = 0; i < want[t].size(); ++i)
      ASSERT_NEAR(got[t][i], want[t][i], relative * std::max(1.0, std::abs(want[t][i])))
          << "tensor " << t << ", element " << i;
}

template <class O, class Rule>
void expect_paper(const O& options, const Rule& rule) {
  const std::vector<Vec> want = of_the_paper(options, rule);
  expect_near(of_the_op(options), want, 1e-12);
  const double fp32 = kSteps * tolerance_of(DType::F32).relative;
  const std::vector<Vec> eager = of_a_program(options, false), graph = of_a_program(options, true);
  expect_near(eager, want, fp32);
  EXPECT_EQ(eager, graph);
}

TEST(Papers, LionStepsByTheSign) {
  expect_paper(optim::Lion{.lr = kLr, .beta1 = 0.875, .beta2 = 0.75, .weight_decay = kDecay},
               lion_of_the_paper);
}

TEST(Papers, LambStepsByTheNormOfEachTensor) {
  expect_paper(optim::Lamb{.lr = kLr, .beta1 = 0.875, .beta2 = 0.75, .weight_decay = kDecay},
               lamb_of_the_paper);
}

// What begins at 0 leaves it, and what gets no gradient and does not decay stays.
TEST(Papers, LambLeavesZero) {
  const optim::OptimizerKind& kind = optim::optimizer_kind("lamb");
  const auto formula = kind.formula.bind({});
  EXPECT_EQ(formula->tensor_numbers(Vec{0, 4})[0], 1);
  EXPECT_EQ(formula->tensor_numbers(Vec{4, 0})[0], 1);
  EXPECT_EQ(formula->tensor_numbers(Vec{16, 4})[0], 2);
}

}  // namespace
}  // namespace aloft
