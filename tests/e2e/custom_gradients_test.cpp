// custom_gradient(), and gradients of gradients of parameters, in both modes.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/autocast.h"
#include "frontend/compile.h"
#include "frontend/custom_gradient.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "frontend/hooks.h"
#include "frontend/value_and_grad.h"
#include "models/mlp.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/transpose.h"
#include "ops/unary.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

class CustomGradients : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    eager().clear_tape();
    manual_seed(2);
  }
};

Tensor some(const Shape& shape, int seed = 0) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.numel().max(); ++i)
    values.push_back(static_cast<float>((i * 37 + seed * 11) % 23 - 11) / 8);
  return from_floats(values, shape);
}

using Function = std::function<Tensor(const Tensor&)>;

// The gradient of a sum with respect to x, eagerly and compiled: the same bits.
std::vector<float> gradient_of(const Function& f, const Tensor& x) {
  const auto gradient = [&](const Tensor& t) {
    return value_and_grad([&](const Tensor& own) { return sum(f(own)); }, GradPosition{0})(t)
        .second[0];
  };
  const std::vector<float> eagerly = gradient(x).to_floats();
  EXPECT_EQ(compile(gradient)(x).to_floats(), eagerly);
  return eagerly;
}

TEST_F(CustomGradients, StandInPlaceOfTheOpsOwn) {
  const auto rounded = custom_gradient([](const Tensor& x) { return round(x); },
                                       [](const Tensor& g, const Tensor& x) { return g * x * 3; });
  const Tensor x = some({2, 5});
  EXPECT_EQ(rounded(x).to_floats(), round(x).to_floats());
  const std::vector<float> g = gradient_of([&](const Tensor& t) { return rounded(t) * 2; }, x);
  const std::vector<float> at = x.to_floats();
  for (std::size_t i = 0; i < g.size(); ++i) EXPECT_FLOAT_EQ(g[i], 6 * at[i]);
  // What else x is read by adds to it, and another call of the same function.
  const std::vector<float> more =
      gradient_of([&](const Tensor& t) { return rounded(t) * 2 + rounded(t) + t * 5; }, x);
  for (std::size_t i = 0; i < g.size(); ++i) EXPECT_FLOAT_EQ(more[i], 9 * at[i] + 5);
  const NoGrad none;
  EXPECT_EQ(rounded(x).to_floats(), round(x).to_floats());
}

TEST_F(CustomGradients, OfSeveralTensorsComeInTheirOrder) {
  int runs = 0;
  const auto product =
      custom_gradient([](const Tensor& a, const Tensor& b, const Tensor&) { return matmul(a, b); },
                      [&](const Tensor& g, const Tensor& a, const Tensor& b, const Tensor&) {
                        ++runs;
                        return std::tuple{matmul(g, transpose(b, {1, 0})),
                                          matmul(transpose(a, {1, 0}), g), Tensor()};
                      });
  const Tensor a = some({3, 4}), b = some({4, 2}, 1), ids = from_ints({1, 2}, {2});
  const auto gradients = [&](bool own) {
    const auto f = [&](const Tensor& s, const Tensor& t) {
      return sum(square(own ? product(s, t, ids) : matmul(s, t)));
    };
    std::vector<std::vector<float>> all;
    for (const Tensor& g : value_and_grad(f, GradPosition{0, 1})(a, b).second)
      all.push_back(g.to_floats());
    return all;
  };
  EXPECT_EQ(gradients(true), gradients(false));
  EXPECT_EQ(runs, 1);
}

// x^3 by hand: its second and third derivatives follow from what backward computes.
TEST_F(CustomGradients, AreDifferentiatedAgain) {
  const auto cube = custom_gradient([](const Tensor& x) { return x * x * x; },
                                    [](const Tensor& g, const Tensor& x) { return g * 3 * x * x; });
  const auto first = [&](const Tensor& t) {
    return value_and_grad([&](const Tensor& own) { return sum(cube(own)); }, GradPosition{0})(t)
        .second[0];
  };
  const Tensor x = some({7});
  const std::vector<float> at = x.to_floats(), second = gradient_of(first, x);
  for (std::size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(second[i], 6 * at[i], 1e-5);
}

TEST_F(CustomGradients, TrainParametersAndAreForgottenWithTheStep) {
  std::weak_ptr<int> seen;
  std::vector<std::map<std::string, std::string>> states;
  for (const bool is_own : {false, true}) {
    manual_seed(2);
    models::Mlp model({4, 8, 3});
    Optimizer opt(optim::Sgd{.lr = 0.125}, model.parameters(), scalar::no_scaler());
    const auto alive = std::make_shared<int>(0);
    seen = alive;
    const auto doubled = custom_gradient([](const Tensor& x) { return x * 2; },
                                         [alive](const Tensor& g, const Tensor&) { return g * 2; });
    for (int i = 0; i < 3; ++i) {
      const Tensor y = model(some({5, 4}, i));
      minimize(mean(square(is_own ? doubled(y) : y * 2)), opt);
    }
    states.push_back(state_of(model, opt));
  }
  EXPECT_EQ(states[0], states[1]);
  EXPECT_TRUE(seen.expired());  // nothing keeps what a step has used
}

TEST_F(CustomGradients, RunInTheTypesOfTheirPlace) {
  std::vector<DType> types;
  const auto product = custom_gradient(
      [&](const Tensor& a, const Tensor& b) {
        const Tensor y = matmul(a, b);
        types = {y.dtype()};
        return y;
      },
      [&](const Tensor& g, const Tensor& a, const Tensor& b) {
        const Tensor of_a = matmul(g, transpose(b, {1, 0}));
        types.push_back(of_a.dtype());
        return std::pair{of_a, matmul(transpose(a, {1, 0}), g)};
      });
  const Tensor a = some({3, 4}), b = some({4, 2}, 1);
  const auto gradient = [&](const auto& f) {
    const auto loss = [&](const Tensor& s, const Tensor& t) {
      const amp::autocast scope({.dtype = DType::F16});
      return sum(cast(f(s, t), DType::F32));
    };
    const auto grads = value_and_grad(loss, GradPosition{0, 1});
    const auto [l, by_hand] = grads(a, b);
    for (const Tensor& g : by_hand) EXPECT_EQ(g.dtype(), DType::F32);
    const auto eagerly = types;
    auto compiled =
        compile([&](const Tensor& s, const Tensor& t) { return grads(s, t).second[0]; });
    EXPECT_EQ(compiled(a, b).to_floats(), by_hand[0].to_floats());
    EXPECT_EQ(types, eagerly);
  };
  gradient(product);
  EXPECT_EQ(types, std::vector(2, DType::F16));
  gradient(amp::custom_fwd(product, DType::F32));
  EXPECT_EQ(types, std::vector(2, DType::F32));
}

TEST_F(CustomGradients, ThatDoNotFitAreRefused) {
  const Tensor x = some({3, 4});
  const auto refused = [&](auto backward) {
    const auto f = custom_gradient([](const Tensor& t) { return t * 2; }, backward);
    return refusal(
        [&] { value_and_grad([&](const Tensor& t) { return sum(f(t)); }, GradPosition{0})(x); });
  };
  expect_words(refused([](const Tensor& g, const Tensor&) { return sum(g); }),
               {"E0334", "another shape", "f32[] for tensor 0", "f32[3,4]"});
  expect_words(refused([](const Tensor& g, const Tensor&) {
                 return std::vector{g, g};
               }),
               {"E0334", "another number", "2 gradients", "1, one for each"});
  EXPECT_EQ(code_of([] {
              custom_gradient(std::function<Tensor(const Tensor&)>(),
                              [](const Tensor& g, const Tensor&) { return g; });
            }),
            "E0302");
}

struct Cubes : nn::Module {
  VariablePtr w = add_parameter("w", {2}, [](float* to, std::int64_t) { to[0] = 1, to[1] = -2; });
  Tensor loss() const { return sum(use(w) * use(w) * use(w)); }
};

// The gradient of a sum of squared gradients: 2 * 3w^2 * 6w.
TEST_F(CustomGradients, GradientsOfParametersAreDifferentiatedAgain) {
  for (const bool is_compiled : {false, true}) {
    Cubes m;
    Optimizer opt(optim::Sgd{.lr = 1.0 / 64}, m.parameters(), scalar::no_scaler());
    const auto step = [&] {
      const Tensor loss = m.loss();
      const Tensor g = gradients_of(loss, {m.w}, {.create_graph = true})[0];
      return minimize(0.0 * loss + sum(square(g)), opt);
    };
    if (is_compiled)
      compile([&](const Tensor& x) { return step(); })(some({1}));
    else
      step();
    EXPECT_EQ(m.w->to_floats(), (std::vector<float>{1 - 36.0f / 64, -2 + 288.0f / 64}));
  }
}

TEST_F(CustomGradients, ThoseWithoutAGraphSayHowToKeepIt) {
  Cubes m;
  const Tensor loss = m.loss();
  const Tensor g = gradients_of(loss, {m.w})[0];
  expect_words(refusal([&] { sum(square(g)).backward(); }), {"E0321", "create_graph = true"});
}

}  // namespace
}  // namespace aloft::e2e
