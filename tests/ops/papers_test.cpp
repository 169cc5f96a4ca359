// Optimizers against their papers, written out line by line in double: the update op's meaning
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
#include "ops/meaning_of_step.h"
#include "ops/reduce.h"
#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamax.h"
#include "optim/adamw.h"
#include "optim/bert_adam.h"
#include "optim/lamb.h"
#include "optim/lars.h"
#include "optim/lion.h"
#include "optim/nadam.h"
#include "optim/novograd.h"
#include "optim/radam.h"
#include "optim/rmsprop.h"
#include "optim/rprop.h"
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
  Vec p, m, v, w;
  double n = 0;  // a number of the tensor
};

// Ginsburg et al. 2019, algorithm 1.
void novograd_of_the_paper(State& s, const Vec& g, int t, const optim::NovoGrad& o) {
  const double square = norm(g) * norm(g);
  s.n = t == 1 ? square : o.beta2 * s.n + (1 - o.beta2) * square;
  for (std::size_t i = 0; i < g.size(); ++i) {
    s.m[i] = o.beta1 * s.m[i] + g[i] / (std::sqrt(s.n) + o.eps) + o.weight_decay * s.p[i];
    s.p[i] -= o.lr * s.m[i];
  }
}

// Chen et al. 2023, algorithm 2.
void lion_of_the_paper(State& s, const Vec& g, int, const optim::Lion& o) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double c = o.beta1 * s.m[i] + (1 - o.beta1) * g[i];
    const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
    s.p[i] = s.p[i] - o.lr * (sign + o.weight_decay * s.p[i]);
    s.m[i] = o.beta2 * s.m[i] + (1 - o.beta2) * g[i];
  }
}

// With L2 regularisation.
template <class O>
double regularised(const State& s, const Vec& g, std::size_t i, const O& o) {
  return g[i] + o.weight_decay * s.p[i];
}
template <class O>
Vec regularised(const State& s, const Vec& g, const O& o) {
  Vec all;
  for (std::size_t i = 0; i < g.size(); ++i) all.push_back(regularised(s, g, i, o));
  return all;
}

// Kingma and Ba 2014, algorithm 2, with eps where torch.optim has it.
void adamax_of_the_paper(State& s, const Vec& g, int t, const optim::Adamax& o) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double d = regularised(s, g, i, o);
    s.m[i] = o.beta1 * s.m[i] + (1 - o.beta1) * d;
    s.v[i] = std::max(o.beta2 * s.v[i], std::abs(d) + o.eps);
    s.p[i] -= o.lr / (1 - std::pow(o.beta1, t)) * s.m[i] / s.v[i];
  }
}

// Duchi et al. 2011, the diagonal form; `initial_sum` and the fading rate are torch.optim's.
void adagrad_of_the_paper(State& s, const Vec& g, int t, const optim::Adagrad& o) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double d = regularised(s, g, i, o);
    if (t == 1) s.v[i] = o.initial_sum;
    s.v[i] += d * d;
    s.p[i] -= o.lr / (1 + (t - 1) * o.lr_decay) * d / (std::sqrt(s.v[i]) + o.eps);
  }
}

// Zeiler 2012, algorithm 1.
void adadelta_of_the_paper(State& s, const Vec& g, int, const optim::Adadelta& o) {
  const auto rms = [&](double mean) { return std::sqrt(mean + o.eps); };
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double d = regularised(s, g, i, o);
    s.v[i] = o.rho * s.v[i] + (1 - o.rho) * d * d;
    const double step = -rms(s.m[i]) / rms(s.v[i]) * d;
    s.m[i] = o.rho * s.m[i] + (1 - o.rho) * step * step;
    s.p[i] += o.lr * step;
  }
}

// Liu et al. 2019, algorithm 2, with the length 5 of torch.optim for the paper's 4.
void radam_of_the_paper(State& s, const Vec& g, int t, const optim::RAdam& o) {
  const double longest = 2 / (1 - o.beta2) - 1, old = std::pow(o.beta2, t);
  const double length = longest - 2 * t * old / (1 - old);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double d = o.decoupled_decay ? g[i] : regularised(s, g, i, o);
    if (o.decoupled_decay) s.p[i] -= o.lr * o.weight_decay * s.p[i];
    s.m[i] = o.beta1 * s.m[i] + (1 - o.beta1) * d;
    s.v[i] = o.beta2 * s.v[i] + (1 - o.beta2) * d * d;
    const double mean = s.m[i] / (1 - std::pow(o.beta1, t));
    if (length <= 5) {
      s.p[i] -= o.lr * mean;
      continue;
    }
    const double adaptive = std::sqrt(1 - old) / (std::sqrt(s.v[i]) + o.eps);
    const double r =
        std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
    s.p[i] -= o.lr * mean * r * adaptive;
  }
}

// Dozat 2016, algorithm 8, with the schedule of the momentum that it recommends.
void nadam_of_the_paper(State& s, const Vec& g, int t, const optim::NAdam& o) {
  const auto mu = [&](int of) {
    return o.beta1 * (1 - 0.5 * std::pow(0.96, of * o.momentum_decay));
  };
  double product = 1;
  for (int of = 1; of <= t; ++of) product *= mu(of);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double d = o.decoupled_decay ? g[i] : regularised(s, g, i, o);
    if (o.decoupled_decay) s.p[i] -= o.lr * o.weight_decay * s.p[i];
    s.m[i] = o.beta1 * s.m[i] + (1 - o.beta1) * d;
    s.v[i] = o.beta2 * s.v[i] + (1 - o.beta2) * d * d;
    const double mean =
        mu(t + 1) * s.m[i] / (1 - product * mu(t + 1)) + (1 - mu(t)) * d / (1 - product);
    s.p[i] -= o.lr * mean / (std::sqrt(s.v[i] / (1 - std::pow(o.beta2, t))) + o.eps);
  }
}

// Riedmiller and Braun 1993, without the step back, as torch.optim has it.
void rprop_of_the_paper(State& s, const Vec& g, int t, const optim::Rprop& o) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double d = regularised(s, g, i, o);
    if (t == 1) s.v[i] = o.lr;
    if (d * s.m[i] > 0) s.v[i] = s.v[i] * o.eta_plus;
    if (d * s.m[i] < 0) s.v[i] = s.v[i] * o.eta_minus;
    s.v[i] = std::min(std::max(s.v[i], o.least_size), o.most_size);
    if (d * s.m[i] < 0) d = 0;
    s.p[i] -= d > 0 ? s.v[i] : d < 0 ? -s.v[i] : 0;
    s.m[i] = d;
  }
}

// The optimizer of BERT's first implementations.
void bert_adam_of_the_paper(State& s, const Vec& g, int, const optim::BertAdam& o) {
  const double share = std::min(1.0, o.max_grad_norm / (norm(g) + 1e-6));
  for (std::size_t i = 0; i < g.size(); ++i) {
    s.m[i] = o.beta1 * s.m[i] + (1 - o.beta1) * g[i] * share;
    s.v[i] = o.beta2 * s.v[i] + (1 - o.beta2) * g[i] * share * g[i] * share;
    s.p[i] -= o.lr * (s.m[i] / (std::sqrt(s.v[i]) + o.eps) + o.weight_decay * s.p[i]);
  }
}

// Reddi et al. 2018, algorithm 2, with Adam's corrections, of which the second is behind the
// maximum: that of a gradient's first square would outlive all others. As torch.optim has it.
void amsgrad(State& s, Vec g, int t, double lr, double beta1, double beta2, double eps) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    s.m[i] = beta1 * s.m[i] + (1 - beta1) * g[i];
    s.v[i] = beta2 * s.v[i] + (1 - beta2) * g[i] * g[i];
    s.w[i] = std::max(s.w[i], s.v[i]);
    const double m = s.m[i] / (1 - std::pow(beta1, t)), w = s.w[i] / (1 - std::pow(beta2, t));
    s.p[i] -= lr * m / (std::sqrt(w) + eps);
  }
}
void amsgrad_of_the_paper(State& s, const Vec& g, int t, const optim::Adam& o) {
  amsgrad(s, regularised(s, g, o), t, o.lr, o.beta1, o.beta2, o.eps);
}
void amsgradw_of_the_paper(State& s, const Vec& g, int t, const optim::AdamW& o) {
  for (double& p : s.p) p *= 1 - o.lr * o.weight_decay;
  amsgrad(s, g, t, o.lr, o.beta1, o.beta2, o.eps);
}

// Tieleman and Hinton 2012; centred: Graves 2013, equations 38 to 41. TensorFlow's documentation.
void rmsprop_of_the_paper(State& s, const Vec& plain, int t, const optim::RmsProp& o) {
  const Vec g = regularised(s, plain, o);
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (t == 1) s.v[i] = o.tensorflow ? 1 : 0;
    s.v[i] = o.alpha * s.v[i] + (1 - o.alpha) * g[i] * g[i];
    s.m[i] = o.alpha * s.m[i] + (1 - o.alpha) * g[i];
    const double spread = o.centered ? std::max(0.0, s.v[i] - s.m[i] * s.m[i]) : s.v[i];
    const double root = o.tensorflow ? std::sqrt(spread + o.eps) : std::sqrt(spread) + o.eps;
    s.w[i] = o.momentum * s.w[i] + (o.tensorflow ? o.lr : 1) * g[i] / root;
    s.p[i] -= (o.tensorflow ? 1 : o.lr) * s.w[i];
  }
}

// You et al. 2017, algorithm 1.
void lars_of_the_paper(State& s, const Vec& g, int, const optim::Lars& o) {
  const double weights = norm(s.p), gradients = norm(g);
  const double local = weights > 0 && gradients > 0
                           ? o.trust * weights / (gradients + o.weight_decay * weights + o.eps)
                           : 1;
  for (std::size_t i = 0; i < g.size(); ++i) {
    s.m[i] = o.momentum * s.m[i] + o.lr * local * (g[i] + o.weight_decay * s.p[i]);
    s.p[i] -= s.m[i];
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
    const auto zeros = [&] { return Vec(kSizes[tensor]); };
    State s{start(tensor), zeros(), zeros(), zeros()};
    for (int t = 1; t <= kSteps; ++t) rule(s, gradient(tensor, t - 1), t, options);
    all.push_back(s.p);
  }
  return all;
}

// The op's meaning, step by step: its results are the next step's operands.
std::vector<Vec> of_the_op(const OptimizerSpec& spec) {
  const auto array = [](const Vec& values) {
    HostArray a = HostArray::zeros(DType::F32, {static_cast<std::int64_t>(values.size())});
    a.values.assign(values.begin(), values.end());
    return a;
  };
  const MeaningOfStep step(spec, {Shape{kSizes[0]}, Shape{kSizes[1]}});
  std::vector<HostArray> kept = step.start({array(start(0)), array(start(1))});
  for (int t = 0; t < kSteps; ++t)
    kept = step(kept, {array(gradient(0, t)), array(gradient(1, t))}, t);
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

TEST(Papers, NovoGradStepsByTheNormOfEachGradient) {
  expect_paper(optim::NovoGrad{.lr = kLr, .beta1 = 0.875, .beta2 = 0.75, .weight_decay = kDecay},
               novograd_of_the_paper);
}

// The norm's mean is f32 in whatever format the momentum is, and stays where a step is skipped.
TEST(Papers, NovoGradKeepsOneNumberOfATensor) {
  const optim::FormulaRecord& formula = optim::formula_named("novograd");
  EXPECT_EQ(formula.element_states(), 1);
  EXPECT_EQ(formula.tensor_states, 1);
  EXPECT_EQ(formula.state_shape(0, {3, 5}, false), (Shape{3, 5}));
  EXPECT_EQ(formula.state_shape(1, {3, 5}, false), Shape{});
  for (const StateFormat format : {StateFormat::F32, StateFormat::BF16, StateFormat::Block8}) {
    UpdateForm form;
    form.states = format, form.keys = {1}, form.decay = {1};
    const UpdateLayout l =
        update_layout(update_attrs(update_attrs_of({&formula, formula.options}, form, 1)), formula);
    EXPECT_EQ(l.state_type(1, {3, 5}), (TensorType{DType::F32, {}}));
    EXPECT_EQ(l.state_type(0, {3, 5}), type_of(format, {3, 5}));
  }
}

TEST(Papers, AdamaxStepsByTheLargestGradient) {
  expect_paper(optim::Adamax{.lr = kLr, .beta1 = 0.875, .beta2 = 0.75, .weight_decay = kDecay},
               adamax_of_the_paper);
}

TEST(Papers, AdagradSlowsWhereGradientsWereLarge) {
  expect_paper(optim::Adagrad{.lr = kLr, .weight_decay = kDecay}, adagrad_of_the_paper);
  expect_paper(optim::Adagrad{.lr = kLr, .lr_decay = 0.25, .initial_sum = 0.5},
               adagrad_of_the_paper);
}

TEST(Papers, AdadeltaStepsInUnitsOfTheWeights) {
  expect_paper(optim::Adadelta{.lr = 0.5, .rho = 0.75, .weight_decay = kDecay},
               adadelta_of_the_paper);
}

// The first step with an adaptive rate is the eighth, or the sixth.
TEST(Papers, RAdamIsRectified) {
  for (const bool decoupled : {false, true})
    for (const double beta2 : {0.75, 0.9375})
      expect_paper(optim::RAdam{.lr = kLr,
                                .beta1 = 0.875,
                                .beta2 = beta2,
                                .decoupled_decay = decoupled,
                                .weight_decay = kDecay},
                   radam_of_the_paper);
}

TEST(Papers, NAdamIsOneStepAhead) {
  for (const bool decoupled : {false, true})
    expect_paper(optim::NAdam{.lr = kLr,
                              .beta1 = 0.875,
                              .beta2 = 0.75,
                              .momentum_decay = 0.5,
                              .decoupled_decay = decoupled,
                              .weight_decay = kDecay},
                 nadam_of_the_paper);
}

// The product of the momentums is followed as far as it says anything.
TEST(Papers, NAdamForgetsItsFirstMomentums) {
  const optim::NAdam o{.beta1 = 0.5};
  EXPECT_EQ(o.product(1000), o.product(100000000));
  EXPECT_EQ(1 - o.product(1000), 1);
}

TEST(Papers, RpropStepsBySigns) {
  expect_paper(optim::Rprop{.lr = kLr}, rprop_of_the_paper);
  expect_paper(optim::Rprop{.lr = kLr,
                            .eta_minus = 0.25,
                            .eta_plus = 2,
                            .least_size = 0.03125,
                            .most_size = 0.25,
                            .weight_decay = kDecay},
               rprop_of_the_paper);
}

TEST(Papers, AmsGradGoesByTheLargest) {
  expect_paper(
      optim::Adam{
          .lr = kLr, .beta1 = 0.875, .beta2 = 0.75, .amsgrad = true, .weight_decay = kDecay},
      amsgrad_of_the_paper);
  expect_paper(
      optim::AdamW{
          .lr = kLr, .beta1 = 0.875, .beta2 = 0.75, .amsgrad = true, .weight_decay = kDecay},
      amsgradw_of_the_paper);
}

TEST(Papers, RmsPropGoesByTheRootOfItsSquares) {
  for (const bool centered : {false, true})
    for (const bool tensorflow : {false, true})
      for (const double momentum : {0.0, 0.875})
        expect_paper(optim::RmsProp{.lr = kLr / 4,
                                    .alpha = 0.75,
                                    .eps = 1.0 / 1024,
                                    .momentum = momentum,
                                    .centered = centered,
                                    .tensorflow = tensorflow,
                                    .weight_decay = kDecay},
                     rmsprop_of_the_paper);
}

TEST(Papers, LarsStepsByTheNormOfEachTensor) {
  expect_paper(optim::Lars{.lr = 1, .trust = 0.125}, lars_of_the_paper);
  expect_paper(optim::Lars{.lr = 1, .momentum = 0.5, .trust = 0.125, .weight_decay = kDecay},
               lars_of_the_paper);
}

// Uphill is downhill with the gradients' negatives, to the bit; the weight decay stays what it is.
TEST(Papers, MaximizedIsTheNegativesMinimized) {
  const auto behind = [](double sign, bool maximize) {
    use_device(cpu_device());
    Weights weights;
    auto trained = amp::initialize(
        weights,
        optim::AdamW{.lr = kLr, .weight_decay = kDecay, .maximize = maximize, .clip_norm = 1},
        "O0");
    for (int t = 0; t < kSteps; ++t) {
      const auto g = [&](int tensor) {
        const Vec values = gradient(tensor, t);
        return from_floats({values.begin(), values.end()}, {kSizes[tensor]}) * sign;
      };
      minimize(trained.first(g(0), g(1)), trained.second);
    }
    return weights.all[1]->to_floats();
  };
  EXPECT_EQ(behind(1, true), behind(-1, false));
  EXPECT_NE(behind(1, true), behind(1, false));
}

TEST(Papers, BertAdamClipsEachTensor) {
  expect_paper(optim::BertAdam{.lr = kLr, .beta1 = 0.875, .beta2 = 0.75, .weight_decay = kDecay},
               bert_adam_of_the_paper);
}

// What begins at 0 leaves it, and what gets no gradient and does not decay stays.
TEST(Papers, LambLeavesZero) {
  const auto formula = optim::formula_named("lamb").bind({});
  optim::TensorStates none = {};
  const auto ratio = [&](const Vec& sums) {
    return formula->tensor_numbers(sums, {}, true, none)[0];
  };
  EXPECT_EQ(ratio({0, 4}), 1);
  EXPECT_EQ(ratio({4, 0}), 1);
  EXPECT_EQ(ratio({16, 4}), 2);
}

}  // namespace
}  // namespace aloft
