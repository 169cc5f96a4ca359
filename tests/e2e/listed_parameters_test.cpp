// deny_params and allow_params of a precision recipe: what an op reads decides, forward and
// backward, never what ran before it.
#include <gtest/gtest.h>

#include <tuple>
#include <utility>
#include <vector>

#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/cross_entropy.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

class ListedParameters : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    eager().clear_tape();
    manual_seed(1);
  }
};

// Its products stand at the path of the model; one of them reads the table.
struct Tied : nn::Layer {
  nn::Embedding emb{*this, "emb", 11, 8};
  Tensor operator()(Operand ids) const {
    Tensor t = emb(ids);
    t = matmul(softmax(matmul(t, t, false, true)), t);
    return sum(cast(matmul(t, use(emb.weight), false, true), DType::F32));
  }
};

// At the same paths as Tied.
struct Other : nn::Layer {
  nn::Linear emb{*this, "emb", 8, 8};
  Tensor operator()(Operand x) const {
    const Tensor t = emb(x);
    return sum(cast(matmul(softmax(t), t, false, true), DType::F32));
  }
};

Tensor ids() {
  std::vector<int> all;
  for (int i = 0; i < 20; ++i) all.push_back((i * 5 + i * i) % 11);
  return from_ints(all, {4, 5});
}

constexpr const char* kDenied = "O1:bf16 deny_params=emb.*";

TEST_F(ListedParameters, ACallIsTheSameWhateverRanBeforeIt) {
  Tied model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{}, kDenied);
  auto compiled = compile([&net = net](const Tensor& x) { return net(x); });
  const double alone = compiled(ids()).item();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(net(ids()).item(), alone) << i;
}

TEST_F(ListedParameters, ThoseOfAnotherModelMakeNoDifference) {
  Tied first;
  Other second;
  auto [a, a_opt] = amp::initialize(first, optim::Sgd{}, kDenied);
  auto [b, b_opt] = amp::initialize(second, optim::Sgd{}, kDenied);
  const Tensor x = spread(3, {4, 8});
  const double alone = b(x).item();
  auto both = compile([&a = a, &b = b](const Tensor& i, const Tensor& y) {
    return std::tuple{a(i), b(y)};
  });
  a(ids());
  EXPECT_EQ(b(x).item(), alone);
  EXPECT_EQ(std::get<1>(both(ids(), x)).item(), alone);
}

// Two products at one path, the first with a weight that is moved on its way.
struct TwoProducts : nn::Layer {
  VariablePtr w = new_parameter("w", {8, 8}, nn::Init::normal(1));
  VariablePtr v = new_parameter("v", {8, 8}, nn::Init::normal(1));
  Tensor operator()(Operand x, Operand y) const {
    const Tensor first = matmul(x, transpose(use(w), {1, 0}));
    return sum(cast(first, DType::F32)) + sum(cast(matmul(y, use(v)), DType::F32));
  }
};

// The gradients of w and v.
std::pair<std::vector<float>, std::vector<float>> gradients_under(const char* recipe) {
  manual_seed(1);
  TwoProducts model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{}, recipe);
  net(spread(3, {4, 8}), spread(4, {4, 8})).backward();
  return {grad_of(model.w).to_floats(), grad_of(model.v).to_floats()};
}

TEST_F(ListedParameters, GradientsGoByWhatTheForwardOpRead) {
  const auto f32 = gradients_under("O0"), denied = gradients_under("O1:bf16 deny_params=w"),
             low = gradients_under("O1:bf16");
  EXPECT_EQ(denied.first, f32.first);
  EXPECT_EQ(denied.second, low.second);
  EXPECT_NE(low.first, f32.first);
  EXPECT_NE(low.second, f32.second);
}

// A compiled step makes one op of a head and its loss.
std::string head_after_a_step(const char* recipe) {
  manual_seed(1);
  struct Head : nn::Layer {
    nn::Linear head{*this, "head", 8, 11, {.bias = false}};
    Tensor operator()(Operand x, Operand target) const { return cross_entropy(head(x), target); }
  } model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 1}, recipe);
  auto step = compile([&net = net, &opt = opt](const Tensor& x, const Tensor& target) {
    return minimize(net(x, target), opt);
  });
  step(spread(3, {4, 5, 8}), ids());
  return bytes_of(*model.head.weight);
}

TEST_F(ListedParameters, GradientsOfAHeadGoByItsWeight) {
  const auto f32 = head_after_a_step("O0");
  EXPECT_EQ(head_after_a_step("O1:bf16 deny_params=head.*"), f32);
  EXPECT_NE(head_after_a_step("O1:bf16"), f32);
}

// Eagerly its gradient is products, and has no other name.
TEST_F(ListedParameters, GradientsOfAHeadGoByItsProducts) {
  const auto f32 = head_after_a_step("O0"), low = head_after_a_step("O1:bf16");
  EXPECT_EQ(head_after_a_step("O1:bf16 deny_ops=linear,matmul"), f32);
  EXPECT_EQ(head_after_a_step("O1:bf16 deny_ops=linear*"), f32);
  EXPECT_NE(head_after_a_step("O1:bf16 deny_ops=linear"), f32);
  EXPECT_NE(low, f32);
}

}  // namespace
}  // namespace aloft::e2e
