// Optimizers of whole tensors against their papers, written out in double: the meaning of their ops
// over 20 steps, and what a program trains with in fp32, eagerly and compiled.
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
#include "ops/meaning_of_step.h"
#include "ops/reduce.h"
#include "optim/adamp.h"
#include "optim/adamw.h"
#include "optim/muon.h"
#include "scalar/philox.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using Vec = std::vector<double>;

constexpr int kSteps = 20;
constexpr double kLr = 0.0625, kDecay = 0.125;  // exact in fp32
const std::vector<Shape> kShapes = {{5, 7}, {33}, {8, 3}, {3, 2, 2}};
constexpr std::size_t kTensors = 4;

Vec drawn(std::uint64_t seed, std::uint64_t step, std::size_t tensor) {
  Vec out;
  for (std::int64_t i = 0; i < kShapes[tensor].max_numel(); ++i)
    out.push_back(static_cast<float>(scalar::normal(scalar::RandomKey{seed, step, 0, tensor}, i)));
  return out;
}

struct State {
  Vec p, m, v;
  std::int64_t rows = 1, columns = 1;
};

double dot(const Vec& a, const Vec& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
double norm(const Vec& x) { return std::sqrt(dot(x, x)); }

// Rows of `x` cut into so many parts.
std::vector<Vec> cut(const Vec& x, std::int64_t parts) {
  std::vector<Vec> out;
  const auto length = static_cast<std::ptrdiff_t>(x.size()) / parts;
  for (std::int64_t r = 0; r < parts; ++r)
    out.emplace_back(x.begin() + r * length, x.begin() + (r + 1) * length);
  return out;
}

// Heo et al. 2020, algorithm 2 and equation 12; norms and threshold as in their program.
void adamp_of_the_paper(State& s, const Vec& g, int t, const optim::AdamP& o) {
  Vec u(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    s.m[i] = o.beta1 * s.m[i] + (1 - o.beta1) * g[i];
    s.v[i] = o.beta2 * s.v[i] + (1 - o.beta2) * g[i] * g[i];
    const double m = o.nesterov ? o.beta1 * s.m[i] + (1 - o.beta1) * g[i] : s.m[i];
    u[i] = m / (std::sqrt(s.v[i] / (1 - std::pow(o.beta2, t))) + o.eps);
  }
  double share = 1;
  for (const std::int64_t parts : {s.rows, std::int64_t{1}}) {
    if (s.rows == 0) break;
    const auto p = cut(s.p, parts), own = cut(g, parts);
    double most = 0;
    for (std::size_t r = 0; r < p.size(); ++r)
      most = std::max(
          most, std::abs(dot(p[r], own[r])) / ((norm(p[r]) + o.eps) * (norm(own[r]) + o.eps)));
    if (most >= o.delta / std::sqrt(static_cast<double>(p[0].size()))) continue;
    share = o.decay_ratio;
    const auto steps = cut(u, parts);
    for (std::size_t r = 0; r < p.size(); ++r) {
      const double length = norm(p[r]) + o.eps, along = dot(p[r], steps[r]) / length;
      for (std::size_t c = 0; c < p[r].size(); ++c)
        u[r * p[r].size() + c] -= p[r][c] / length * along;
    }
    break;
  }
  for (std::size_t i = 0; i < g.size(); ++i)
    s.p[i] =
        s.p[i] * (1 - o.lr * o.weight_decay * share) - o.lr / (1 - std::pow(o.beta1, t)) * u[i];
}

// Jordan et al. 2024; of the rest Loshchilov and Hutter 2017.
using Matrix = std::vector<Vec>;
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out(a.size(), Vec(b[0].size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < b[0].size(); ++j) out[i][j] += a[i][k] * b[k][j];
  return out;
}
Matrix transposed(const Matrix& a) {
  Matrix out(a[0].size(), Vec(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[0].size(); ++j) out[j][i] = a[i][j];
  return out;
}
Matrix combined(double x, const Matrix& a, double y, const Matrix& b) {
  Matrix out = a;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[0].size(); ++j) out[i][j] = x * a[i][j] + y * b[i][j];
  return out;
}
void muon_of_the_paper(State& s, const Vec& g, int t, const optim::Muon& o) {
  if (s.rows == 0 || s.columns == 0) {
    const double lr = o.lr * o.rest_rate;
    for (std::size_t i = 0; i < g.size(); ++i) {
      s.m[i] = o.beta1 * s.m[i] + (1 - o.beta1) * g[i];
      s.v[i] = o.beta2 * s.v[i] + (1 - o.beta2) * g[i] * g[i];
      const double m = s.m[i] / (1 - std::pow(o.beta1, t)), v = s.v[i] / (1 - std::pow(o.beta2, t));
      s.p[i] = s.p[i] * (1 - lr * o.weight_decay) - lr * m / (std::sqrt(v) + o.eps);
    }
    return;
  }
  Vec u(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    s.m[i] = o.momentum * s.m[i] + (1 - o.momentum) * g[i];
    u[i] = o.nesterov ? (1 - o.momentum) * g[i] + o.momentum * s.m[i] : s.m[i];
  }
  const double length = std::max(norm(u), 1e-7);
  for (double& x : u) x /= length;
  Matrix x = cut(u, s.rows);
  const bool is_high = s.rows > s.columns;
  if (is_high) x = transposed(x);
  for (int i = 0; i < 5; ++i) {
    const Matrix a = product(x, transposed(x));
    const Matrix b = combined(-4.775, a, 2.0315, product(a, a));
    x = combined(3.4445, x, 1, product(b, x));
  }
  if (is_high) x = transposed(x);
  const double size = o.match_adamw
                          ? 0.2 * std::sqrt(static_cast<double>(std::max(s.rows, s.columns)))
                          : std::sqrt(std::max(1.0, double(s.rows) / double(s.columns)));
  for (std::size_t i = 0; i < g.size(); ++i)
    s.p[i] = s.p[i] * (1 - o.lr * o.weight_decay) -
             o.lr * size * x[i / std::size_t(s.columns)][i % std::size_t(s.columns)];
}

HostArray array(std::size_t tensor, const Vec& values) {
  HostArray a = HostArray::zeros(DType::F32, kShapes[tensor].max_extents());
  a.values.assign(values.begin(), values.end());
  return a;
}

struct Weights : nn::Module {
  std::vector<VariablePtr> all;
  Weights() {
    for (std::size_t i = 0; i < kTensors; ++i)
      all.push_back(
          add_parameter("w" + std::to_string(i), kShapes[i], [&](float* to, std::int64_t) {
            const Vec values = drawn(5, 0, i);
            std::copy(values.begin(), values.end(), to);
          }));
  }
  // A loss whose gradients are the given ones.
  Tensor operator()(const std::vector<Tensor>& g) const {
    Tensor loss = sum(use(all[0]) * g[0]);
    for (std::size_t i = 1; i < all.size(); ++i) loss = loss + sum(use(all[i]) * g[i]);
    return loss;
  }
};

std::vector<Vec> of_a_program(const OptimizerSpec& spec, bool is_compiled) {
  use_device(cpu_device());
  Weights weights;
  auto trained = amp::initialize(weights, spec, "O0");
  const auto step = [&](const std::vector<Tensor>& g) {
    return minimize(trained.first(g), trained.second);
  };
  auto compiled = compile(step, {.partial_batches = false});
  for (int t = 0; t < kSteps; ++t) {
    std::vector<Tensor> g;
    for (std::size_t i = 0; i < kTensors; ++i) {
      const Vec values = drawn(3, std::uint64_t(t), i);
      g.push_back(from_floats({values.begin(), values.end()}, kShapes[i]));
    }
    is_compiled ? compiled(g) : step(g);
  }
  std::vector<Vec> all;
  for (const VariablePtr& v : weights.all) {
    const std::vector<float> values = v->to_floats();
    all.emplace_back(values.begin(), values.end());
  }
  return all;
}

void expect_near(const std::vector<Vec>& got, const std::vector<Vec>& want, double relative) {
  for (std::size_t t = 0; t < want.size(); ++t) {
    double most = 0;
    for (const double x : want[t]) most = std::max(most, std::abs(x));
    for (std::size_t i = 0; i < want[t].size(); ++i)
      ASSERT_NEAR(got[t][i], want[t][i], relative * most) << "tensor " << t << ", element " << i;
  }
}

// `rule` of the paper knows what is no matrix by its rows, 0.
template <class O, class Rule>
void expect_paper(const O& options, const Rule& rule, int least_rank, int most_rank,
                  double relative = 1e-12, double fp32 = 1e-5) {
  const OptimizerSpec spec = options;
  std::vector<Vec> want;
  std::vector<HostArray> kept;
  for (std::size_t i = 0; i < kTensors; ++i) {
    const Shape& shape = kShapes[i];
    State s{drawn(5, 0, i), Vec(shape.max_numel()), Vec(shape.max_numel())};
    const bool is_matrix = shape.rank() >= least_rank && shape.rank() <= most_rank;
    s.rows = is_matrix ? shape[0].max() : 0;
    s.columns = is_matrix ? shape.max_numel() / shape[0].max() : 0;
    kept.push_back(array(i, s.p));
    for (int t = 1; t <= kSteps; ++t) rule(s, drawn(3, std::uint64_t(t - 1), i), t, options);
    want.push_back(s.p);
  }
  const MeaningOfStep step(spec, kShapes);
  kept = step.start(kept);
  for (int t = 0; t < kSteps; ++t) {
    std::vector<HostArray> g;
    for (std::size_t i = 0; i < kTensors; ++i) g.push_back(array(i, drawn(3, std::uint64_t(t), i)));
    kept = step(kept, g, t);
  }
  std::vector<Vec> meant;
  for (std::size_t i = 0; i < kTensors; ++i)
    meant.emplace_back(kept[i].values.begin(), kept[i].values.end());
  expect_near(meant, want, relative);
  const std::vector<Vec> eager = of_a_program(spec, false), graph = of_a_program(spec, true);
  expect_near(eager, want, fp32);
  EXPECT_EQ(eager, graph);
}

// With a wide angle some tensors lose a part by rows, some as a whole, some none.
TEST(TensorFormulas, AdamPLosesWhatLiesAlongTheWeights) {
  for (const double delta : {0.1, 0.5, 2.0})
    for (const bool nesterov : {false, true})
      expect_paper(optim::AdamP{.lr = kLr,
                                .beta1 = 0.875,
                                .beta2 = 0.75,
                                .delta = delta,
                                .nesterov = nesterov,
                                .weight_decay = kDecay},
                   adamp_of_the_paper, 2, 8);
}

TEST(TensorFormulas, MuonMakesMatricesOrthogonal) {
  for (const bool nesterov : {false, true})
    for (const bool match : {false, true})
      expect_paper(optim::Muon{.lr = kLr,
                               .momentum = 0.875,
                               .nesterov = nesterov,
                               .match_adamw = match,
                               .rest_rate = 0.5,
                               .beta1 = 0.875,
                               .beta2 = 0.75,
                               .weight_decay = kDecay},
                   muon_of_the_paper, 2, 2, 1e-11, 1e-4);
}

// Roundings of the iteration move a direction by some hundredths at most; what is no matrix has
// none.
TEST(TensorFormulas, MuonsProductsMayBeOfBf16) {
  optim::Muon muon{.lr = kLr, .momentum = 0.875};
  const std::vector<Vec> exact = of_a_program(muon, true);
  muon.bf16_products = true;
  const std::vector<Vec> rounded = of_a_program(muon, true);
  EXPECT_EQ(rounded, of_a_program(muon, false));
  for (const std::size_t i : {1, 3}) EXPECT_EQ(rounded[i], exact[i]);
  for (const std::size_t i : {0, 2}) {
    double most = 0;
    for (std::size_t j = 0; j < exact[i].size(); ++j)
      most = std::max(most, std::abs(rounded[i][j] - exact[i][j]));
    EXPECT_GT(most, 1e-5) << i;
    EXPECT_LT(most, 0.05 * kSteps * kLr) << i;
  }
}

// What is named is taken for no matrix, and what is none keeps what AdamW keeps.
TEST(TensorFormulas, MuonUpdatesTheRestAsAdamW) {
  const optim::AdamW adamw{.lr = kLr, .beta1 = 0.875, .beta2 = 0.75, .weight_decay = kDecay};
  const optim::Muon muon{
      .lr = kLr, .beta1 = 0.875, .beta2 = 0.75, .weight_decay = kDecay, .rest = {"w0"}};
  const auto of_muon = of_a_program(muon, true), of_adamw = of_a_program(adamw, true);
  for (const std::size_t i : {0, 1, 3}) expect_near({of_muon[i]}, {of_adamw[i]}, 1e-5);
  EXPECT_NE(of_muon[2], of_adamw[2]);
  Weights weights;
  const auto trained = amp::initialize(weights, muon, "O0");
  EXPECT_EQ(trained.second.moment(1, 0)->type.shape, kShapes[0]);
  EXPECT_EQ(trained.second.moment(1, 2)->type.shape, Shape{0});
  Weights others;
  try {
    amp::initialize(others, optim::Muon{.rest = {"w0", "w9*"}}, "O0");
    FAIL() << "a pattern that matches nothing";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0809");
  }
}

}  // namespace
}  // namespace aloft
