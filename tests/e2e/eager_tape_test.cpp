// The eager tape forgets what nobody can differentiate any more, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/scale_loss.h"
#include "models/mlp.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/transpose.h"
#include "optim/adamw.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kRows = 128, kWidth = 256;

Tensor images(int i) {
  std::vector<float> x(kRows * kWidth);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>((k * 31 + i * 7) % 17) / 17;
  return from_floats(x, {kRows, kWidth});
}

class EagerTape : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    use_cpu();
    omp_set_num_threads(1);
    eager().clear_tape();
    manual_seed(3);
  }
};

// Evaluation as one writes it: nothing says NoGrad, nobody calls backward().
TEST_P(EagerTape, EvaluationWithoutNoGradDoesNotGrow) {
  models::Mlp model({kWidth, 512, 10});
  auto [net, opt] = amp::initialize(model, optim::AdamW{}, GetParam());
  model.eval();
  std::size_t most = 0;
  std::vector<double> first;
  for (int i = 0; i < 151; ++i) {  // some 700 kB of values each
    const Tensor y = net(images(i % 3));
    if (i == 0) first = y.to_vector();
    if (i == 150) {
      EXPECT_EQ(y.to_vector(), first);
    }
    most = std::max(most, eager().tape_size());
  }
  EXPECT_GT(most, 0u);
  EXPECT_LT(most, 400u);  // all of them would be 151 times at least 4
}

// Training with such evaluations between leaves the same bits behind as without.
TEST_P(EagerTape, SweepsDoNotChangeATrainingStep) {
  std::vector<std::string> states[2];
  for (const bool with_evaluation : {false, true}) {
    eager().clear_tape();
    manual_seed(3);
    models::Mlp model({kWidth, 512, 10});
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, GetParam());
    const Tensor label = from_ints(std::vector<std::int32_t>(kRows, 4), {kRows});
    for (int i = 0; i < 3; ++i) {
      // The first half of the step's graph, then much else, then the other half and backward.
      const Tensor loss = cross_entropy(net(images(i)), label);
      if (with_evaluation)
        for (int k = 0; k < 60; ++k) net(images(k));
      minimize(loss + cross_entropy(net(images(i + 1)), label), opt);
    }
    for (const VariablePtr& v : model.parameters()) states[with_evaluation].push_back(bytes_of(*v));
    for (const VariablePtr& v : opt.state()) states[with_evaluation].push_back(bytes_of(*v));
  }
  EXPECT_TRUE(states[0] == states[1]);
}

INSTANTIATE_TEST_SUITE_P(All, EagerTape, testing::Values("O0", "O1:bf16", "O2:fp16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

// A session remembers the variables that it has read and the gradients that backward() left, but
// keeps no model alive by it.
TEST(DeadModels, AreNotKeptByWhatBackwardLeft) {
  use_cpu();
  eager().clear_tape();
  eager().forget_gradients();
  const auto weight_of_model_with_gradients = [] {
    models::Mlp model({4, 3, 2});
    auto [net, opt] = amp::initialize(model, optim::AdamW{}, "O2:fp16");
    model.requires_grad(false, "0.bias");  // a variable but no parameter that is trained
    amp::scale_loss(mean(net(full({2, 4}, 1))), opt).backward();
    EXPECT_TRUE(grad_of(model.parameters()[0]).is_defined());
    return std::weak_ptr<Variable>(model.parameters()[0]);
  };
  const auto first = weight_of_model_with_gradients();
  weight_of_model_with_gradients();
  EXPECT_TRUE(first.expired());
}

TEST(DeadModels, AreNotKeptByEvaluation) {
  use_cpu();
  eager().clear_tape();
  const NoGrad no_grad;
  const models::Mlp living({4, 3, 2});
  const auto want = living(full({2, 4}, 1)).to_vector();
  std::vector<std::weak_ptr<Variable>> weights;  // of 4 MB each
  for (int i = 0; i < 24; ++i) {
    const models::Mlp model({1024, 1024, 1});
    model(full({1, 1024}, 1));
    weights.push_back(model.parameters()[0]);
    EXPECT_EQ(living(full({2, 4}, 1)).to_vector(), want);
  }
  EXPECT_LT(
      std::count_if(weights.begin(), weights.end(), [](const auto& w) { return !w.expired(); }),
      12);
}

// As in PyTorch there is no gradient of several numbers at once: which of them would be a guess.
TEST(Backward, StartsFromOneNumber) {
  use_cpu();
  models::Mlp model({4, 3, 2});
  const Tensor y = model(full({2, 4}, 1));
  for (const Tensor& several : {y, reshape(y, {1, 4}), full({0}, 1), cast(sum(y), DType::I32)}) {
    try {
      several.backward();
      ADD_FAILURE() << "taken: " << several.type().str();
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0803");
      EXPECT_NE(std::string(e.what()).find(several.type().str()), std::string::npos);
    }
  }
  reshape(sum(y), {1, 1}).backward();
}

template <class F>
std::string code_of(F make) {
  try {
    make();
    return "taken";
  } catch (const UserError& e) {
    return e.code();
  }
}

TEST(Factories, RefuseShapesThatNothingCanHave) {
  use_cpu();
  EXPECT_EQ(code_of([] { full({-1, 2}, 0); }), "E0103");
  EXPECT_EQ(code_of([] { from_floats({1, 2, 3, 4, 5, 6}, {-2, -3}); }), "E0103");
  EXPECT_EQ(code_of([] { from_ints({}, {-1, 0}); }), "E0103");
  EXPECT_EQ(code_of([] { models::Mlp({4, -3, 2}); }), "E0210");  // the layer looks first
}

TEST(Axes, CountFromTheBackOrAreRefused) {
  use_cpu();
  const Tensor x = full({2, 3, 4}, 1);
  EXPECT_EQ(swap_axes(x, 0, -1).shape(), Shape({4, 3, 2}));
  EXPECT_EQ(code_of([&] { swap_axes(x, 3, 0); }), "E0107");
  EXPECT_EQ(code_of([&] { swap_axes(x, 0, -4); }), "E0107");
  EXPECT_EQ(flatten(x, -2).shape(), Shape({2, 12}));
  EXPECT_EQ(flatten(x, 0, -2).shape(), Shape({6, 4}));
  EXPECT_EQ(flatten(full({}, 1)).shape(), Shape({}));
  EXPECT_EQ(code_of([&] { flatten(x, 3); }), "E0107");
  EXPECT_EQ(code_of([&] { flatten(x, 0, 3); }), "E0107");
}

}  // namespace
}  // namespace aloft::e2e
