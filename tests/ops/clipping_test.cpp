// What becomes of gradients before an update: plain descent at rate 1 moves weights by just that.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/module.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "optim/muon.h"
#include "optim/sgd.h"

namespace aloft {
namespace {

using Floats = std::vector<float>;

// "a" [2, 3], "b" [3]; the gradients are the given ones.
struct Weights : nn::Module {
  VariablePtr a = filled("a", {2, 3}, {3, 0, 4, 0.5, 0, 0}), b = filled("b", {3}, {0, 0, 0});
  Tensor operator()(const Tensor& g, const Tensor& h) const {
    return sum(use(a) * g) + sum(use(b) * h);
  }

 private:
  VariablePtr filled(const char* name, const Shape& shape, const Floats& values) {
    return add_parameter(
        name, shape, [&](float* to, std::int64_t) { std::copy(values.begin(), values.end(), to); });
  }
};

struct Moved {
  Floats a, b;
  bool operator==(const Moved&) const = default;
};

// By how much one step moves the weights against the gradients.
Moved moved_by(const OptimizerSpec& spec, bool is_compiled, const char* level = "O0") {
  use_device(cpu_device());
  Weights w;
  const Floats a = w.a->to_floats(), b = w.b->to_floats();
  auto trained = amp::initialize(w, spec, level);
  const auto step = [&](const Tensor& g, const Tensor& h) {
    return minimize(trained.first(g, h), trained.second);
  };
  auto compiled = compile(step, {.partial_batches = false});
  const Tensor g = from_floats({10, 0, 0, 0.25, 0, 0}, {2, 3}),
               h = from_floats({0, -2, 0.001f}, {3});
  is_compiled ? compiled(g, h) : step(g, h);
  const auto between = [](const Floats& from, const Floats& to) {
    Floats out;
    for (std::size_t i = 0; i < from.size(); ++i) out.push_back(from[i] - to[i]);
    return out;
  };
  return {between(a, w.a->to_floats()), between(b, w.b->to_floats())};
}

void expect_near(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}
void expect_moved(const OptimizerSpec& spec, const Moved& want) {
  const Moved eager = moved_by(spec, false);
  expect_near(eager.a, want.a);
  expect_near(eager.b, want.b);
  EXPECT_EQ(eager, moved_by(spec, true));
}

TEST(Clipping, CutsElements) {
  expect_moved(optim::Sgd{.lr = 1, .clip_value = 0.5},
               {{0.5, 0, 0, 0.25, 0, 0}, {0, -0.5, 0.001f}});
  expect_moved(optim::Sgd{.lr = 1}, {{10, 0, 0, 0.25, 0, 0}, {0, -2, 0.001f}});
}

// Behind the norm's limit: of 10, 0.25 and 2 that is 10.2; uphill as well.
TEST(Clipping, CutsWhatTheNormLeaves) {
  const float scale = 5 / std::sqrt(100.0f + 0.0625f + 4 + 1e-6f);
  expect_moved(optim::Sgd{.lr = 1, .clip_norm = 5, .clip_value = 1},
               {{1, 0, 0, 0.25f * scale, 0, 0}, {0, -2 * scale, 0.001f * scale}});
  expect_moved(optim::Sgd{.lr = 1, .maximize = true, .clip_norm = 5, .clip_value = 1},
               {{-1, 0, 0, -0.25f * scale, 0, 0}, {0, 2 * scale, -0.001f * scale}});
}

// The rows of weights have norms 5 and 0.5, and a vector of zeros counts as 0.001.
TEST(Clipping, KeepsRowsSmallBesideTheirWeights) {
  const float b = 0.1f * 0.001f / std::sqrt(4 + 1e-6f);
  expect_moved(optim::Sgd{.lr = 1, .clip_adaptive = 0.1},
               {{0.5, 0, 0, 0.05f, 0, 0}, {0, -2 * b, 0.001f * b}});
  expect_moved(
      optim::Sgd{
          .lr = 1, .clip_adaptive = 0.1, .groups = {{.parameters = {"b"}, .clip_adaptive = 0}}},
      {{0.5, 0, 0, 0.05f, 0, 0}, {0, -2, 0.001f}});
}

TEST(Clipping, GroupsHaveNormsOfTheirOwn) {
  const float all = 5 / std::sqrt(100.0f + 0.0625f + 4 + 1e-6f);
  expect_moved(
      optim::Sgd{.lr = 1, .clip_norm = 5, .groups = {{.parameters = {"b"}, .clip_norm = 1}}},
      {{10 * all, 0, 0, 0.25f * all, 0, 0}, {0, -1, 0.0005f}});
  expect_moved(
      optim::Sgd{.lr = 1, .clip_norm = 5, .groups = {{.parameters = {"b"}, .clip_norm = 0}}},
      {{10 * all, 0, 0, 0.25f * all, 0, 0}, {0, -2, 0.001f}});
  expect_moved(optim::Sgd{.lr = 1, .groups = {{.parameters = {"a"}, .clip_value = 0.125}}},
               {{0.125, 0, 0, 0.125, 0, 0}, {0, -2, 0.001f}});
}

// Limits are of gradients without the loss scale.
TEST(Clipping, IsOfUnscaledGradients) {
  for (const OptimizerSpec& spec :
       {OptimizerSpec(optim::Sgd{.lr = 1, .clip_value = 0.5}),
        OptimizerSpec(optim::Sgd{.lr = 1, .clip_adaptive = 0.125}),
        OptimizerSpec(optim::Sgd{.lr = 1, .groups = {{.parameters = {"b"}, .clip_norm = 1}}})}) {
    const Moved plain = moved_by(spec, true), scaled = moved_by(spec, true, "O1:fp16");
    for (std::size_t i = 0; i < plain.a.size(); ++i)
      EXPECT_NEAR(scaled.a[i], plain.a[i], 2e-3 * (1 + std::abs(plain.a[i])));
    for (std::size_t i = 0; i < plain.b.size(); ++i)
      EXPECT_NEAR(scaled.b[i], plain.b[i], 2e-3 * (1 + std::abs(plain.b[i])));
  }
}

// A rule of whole tensors has them as well: what is no matrix moves by AdamW's sign at first.
TEST(Clipping, HoldsForRulesOfTensors) {
  const auto b_of = [](double limit) {
    return moved_by(optim::Muon{.lr = 1, .eps = 1, .weight_decay = 0, .clip_value = limit}, true).b;
  };
  expect_near(b_of(0.5), {0, -0.5f / 1.5f, 0.001f / 1.001f});
  expect_near(b_of(0), {0, -2.0f / 3, 0.001f / 1.001f});
}

}  // namespace
}  // namespace aloft
