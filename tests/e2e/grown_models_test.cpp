// Optimizer::add: a module that grows between its steps.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoints.h"
#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "numbers.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "temporary_folder.h"

namespace aloft::e2e {
namespace {

// Residual blocks, as many as there are.
struct Tower : nn::Layer {
  Tower() { grow(); }
  void grow() {
    const std::string n = std::to_string(blocks.size());
    blocks.push_back(std::make_unique<nn::Linear>(*this, n, 6, 6));
    norms.push_back(std::make_unique<nn::LayerNorm>(*this, "norm" + n, 6));
  }
  std::vector<VariablePtr> newest() const {
    std::vector<VariablePtr> all = blocks.back()->parameters();
    for (const VariablePtr& p : norms.back()->parameters()) all.push_back(p);
    return all;
  }
  Tensor operator()(Operand x) const {
    return call(x, [&](Tensor t) {
      for (std::size_t i = 0; i < blocks.size(); ++i) t = t + gelu((*blocks[i])((*norms[i])(t)));
      return t;
    });
  }
  std::vector<std::unique_ptr<nn::Linear>> blocks;
  std::vector<std::unique_ptr<nn::LayerNorm>> norms;
};

const optim::AdamW kRule{.lr = 1e-2, .weight_decay = 0.1};

class GrownModels : public testing::TestWithParam<std::tuple<bool, const char*>> {
 protected:
  void SetUp() override {
    use_cpu();
    omp_set_num_threads(1);
    eager().clear_tape();
    manual_seed(3);
  }
  bool is_compiled() const { return std::get<0>(GetParam()); }
  const char* precision() const { return std::get<1>(GetParam()); }
};

// A training that grows when it is told to.
struct Training {
  Training(bool compiled, const char* precision, const OptimizerSpec& spec = kRule)
      : is_compiled(compiled), net(amp::initialize(model, spec, precision)) {}

  void step(int number) {
    const Tensor x = spread(number, {8, 6});
    const StepResult r = is_compiled ? compiled_(x) : update(x);
    losses.push_back(r.loss());
    norms.push_back(r.grad_norm.item());
  }
  void steps(int from, int to) {
    for (int i = from; i < to; ++i) step(i);
  }
  void grow(const std::vector<ParameterGroup>& groups = {}) {
    model.grow();
    net.second.add(model.newest(), groups);
  }
  StepResult update(const Tensor& x) {
    const Tensor d = net.first(x) - 0.3;
    return minimize(mean(square(d)), net.second);
  }
  std::map<std::string, std::string> state() const { return state_of(model, net.second); }

  Tower model;
  bool is_compiled;
  std::pair<amp::Net<Tower>, Optimizer> net;
  std::vector<double> losses, norms;

 private:
  Compiled<std::function<StepResult(Tensor)>> compiled_ =
      compile(std::function<StepResult(Tensor)>([this](Tensor x) { return update(x); }));
};

TEST_P(GrownModels, WhatIsAddedIsTrainedByItsOwnCount) {
  Training t(is_compiled(), precision());
  t.steps(0, 3);
  t.grow();
  const Optimizer& opt = t.net.second;
  EXPECT_EQ(opt.parameters().size(), 8u);
  const VariablePtr weight = t.model.blocks[1]->weight;
  const bool is_low = std::string(precision()) == "O2:bf16";
  EXPECT_EQ(weight->type.dtype, is_low ? DType::BF16 : DType::F32);
  EXPECT_EQ(weight->master != nullptr, is_low);
  EXPECT_EQ(t.model.norms[1]->weight->type.dtype, DType::F32);
  const std::string before = bytes_of(*weight);
  t.steps(3, 5);
  EXPECT_NE(bytes_of(*weight), before);
  EXPECT_EQ(opt.applied->buffer->read_one<std::int64_t>(), 5);
  ASSERT_NE(opt.applied_to(4), opt.applied);
  EXPECT_EQ(opt.applied_to(4)->buffer->read_one<std::int64_t>(), 2);
  EXPECT_EQ(opt.applied_to(0), opt.applied);
  // Its first update is that of a first update: of Adam, the rate, whatever the gradient.
  EXPECT_GT(t.norms.back(), 0);
}

// Both modes, to the bit, with several that come one after another.
TEST_P(GrownModels, TrainsAlikeInBothModes) {
  std::map<std::string, std::string> states[2];
  std::vector<double> losses[2];
  for (const bool compiled : {false, true}) {
    SetUp();
    Training t(compiled, precision());
    t.steps(0, 2);
    t.grow();
    t.steps(2, 4);
    t.grow({{.parameters = {"2.*", "norm2.*"}, .lr = 1e-3}});
    t.steps(4, 7);
    states[compiled] = t.state();
    losses[compiled] = t.losses;
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_TRUE(states[0] == states[1]);
}

// Before the first step it is as if it had been there from the start.
TEST_P(GrownModels, AddedBeforeTheFirstStepIsAsFromTheStart) {
  std::map<std::string, std::string> states[2];
  for (const bool later : {false, true}) {
    SetUp();
    std::optional<Training> t;
    if (later) {
      t.emplace(is_compiled(), precision());
      t->grow();
      t->steps(0, 3);
      states[1] = t->state();
      continue;
    }
    Tower model;
    model.grow();
    auto [net, opt] = amp::initialize(model, kRule, precision());
    for (int i = 0; i < 3; ++i) minimize(mean(square(net(spread(i, {8, 6})) - 0.3)), opt);
    states[0] = state_of(model, opt);
  }
  EXPECT_TRUE(states[0] == states[1]);
}

TEST_P(GrownModels, AResumedTrainingEndsWithTheSameBits) {
  const TemporaryFolder folder;
  Training straight(is_compiled(), precision());
  straight.steps(0, 2);
  straight.grow();
  straight.steps(2, 4);
  {
    SetUp();
    Training first(is_compiled(), precision());
    Checkpoints checkpoints(folder.path());
    first.steps(0, 2);
    first.grow();
    first.steps(2, 3);
    checkpoints.save({3, 24}, first.model, first.net.second);
    first.step(3);  // lost
  }
  SetUp();
  Training second(is_compiled(), precision());
  Checkpoints checkpoints(folder.path());
  EXPECT_EQ(code_of([&] { checkpoints.load(second.model, second.net.second); }), "E0641");
  second.grow();
  ASSERT_TRUE(checkpoints.load(second.model, second.net.second));
  second.step(3);
  EXPECT_TRUE(second.state() == straight.state());
}

INSTANTIATE_TEST_SUITE_P(Modes, GrownModels,
                         testing::Combine(testing::Bool(), testing::Values("O0", "O2:bf16")),
                         [](const auto& info) {
                           std::string name = std::get<1>(info.param);
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name + (std::get<0>(info.param) ? "_compiled" : "_eager");
                         });

class AddedParameters : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    eager().clear_tape();
    manual_seed(3);
  }
};

TEST_F(AddedParameters, HaveTheNumbersOfTheirGroup) {
  Training t(false, "O0", optim::Sgd{.lr = 0.1, .groups = {{.parameters = {"norm?.*"}, .lr = 0}}});
  t.step(0);
  t.grow({{.parameters = {"1.bias"}, .lr = 0}});
  const auto bytes = [&](const VariablePtr& v) { return bytes_of(*v); };
  const std::string weight = bytes(t.model.blocks[1]->weight),
                    bias = bytes(t.model.blocks[1]->bias), norm = bytes(t.model.norms[1]->weight);
  t.steps(1, 3);
  EXPECT_NE(bytes(t.model.blocks[1]->weight), weight);
  EXPECT_EQ(bytes(t.model.blocks[1]->bias), bias);
  EXPECT_EQ(bytes(t.model.norms[1]->weight), norm);  // by a group that was there
}

TEST_F(AddedParameters, MayBeFrozenAndUnfrozenLater) {
  for (const bool compiled : {false, true}) {
    SetUp();
    Training t(compiled, "O2:bf16");
    t.step(0);
    t.model.grow();
    t.model.requires_grad(false, "1.*");
    t.net.second.add(t.model.newest());
    const std::string before = bytes_of(*t.model.blocks[1]->weight);
    t.step(1);
    EXPECT_EQ(bytes_of(*t.model.blocks[1]->weight), before);
    t.model.requires_grad(true);
    t.steps(2, 4);
    EXPECT_NE(bytes_of(*t.model.blocks[1]->weight), before);
    EXPECT_EQ(t.net.second.applied_to(4)->buffer->read_one<std::int64_t>(), 2);
  }
}

TEST_F(AddedParameters, AreSummedOverMicroBatches) {
  std::map<std::string, std::string> states[2];
  for (const bool compiled : {false, true}) {
    SetUp();
    Tower model;
    auto [net, opt] = amp::initialize(model, kRule, "O0");
    opt.set_accumulation(2);
    const auto loss = [&net = net](const Tensor& x) { return mean(square(net(x) - 0.3)); };
    const auto sum = [&, &opt = opt](const Tensor& x) { return accumulate(loss(x), opt); };
    const auto last = [&, &opt = opt](const Tensor& x) {
      return minimize(loss(x), opt).loss_tensor;
    };
    auto compiled_sum = compile(sum);
    auto compiled_last = compile(last);
    for (int i = 0; i < 8; ++i) {
      if (i == 4) {
        model.grow();
        opt.add(model.newest());
      }
      const Tensor x = spread(i, {8, 6});
      if (i % 2 == 0)
        compiled ? compiled_sum(x) : sum(x);
      else
        compiled ? compiled_last(x) : last(x);
    }
    states[compiled] = state_of(model, opt);
  }
  EXPECT_TRUE(states[0] == states[1]);
}

TEST_F(AddedParameters, ThatCannotBeAreRefusedAndNothingIsChanged) {
  Training t(false, "O2:bf16");
  t.step(0);
  t.model.grow();
  Optimizer& opt = t.net.second;
  const auto newest = t.model.newest();
  const auto count = opt.parameters().size();
  const auto refused = [&](const std::vector<VariablePtr>& p,
                           const std::vector<ParameterGroup>& groups = {}) {
    return code_of([&] { opt.add(p, groups); });
  };
  EXPECT_EQ(refused({nullptr}), "E0325");
  EXPECT_EQ(refused({t.model.blocks[0]->weight}), "E0325");
  EXPECT_EQ(refused({newest[0], newest[0]}), "E0325");
  EXPECT_EQ(refused(newest, {{.parameters = {"none.*"}, .lr = 1.0}}), "E0809");
  EXPECT_EQ(refused(newest, {{.parameters = {"*.weight"}, .lr = 1.0}}), "E0809");  // "0.weight"
  EXPECT_EQ(refused(newest, {{.parameters = {"1.*"}, .lr = -1.0}}), "E0814");
  auto traced = compile([&](const Tensor& x) {
    opt.add(newest);
    return x;
  });
  expect_words(refusal([&] { traced(spread(0, {8, 6})); }), {"E0305", "Optimizer::add()"});
  EXPECT_EQ(opt.parameters().size(), count);
  EXPECT_EQ(opt.given().size(), count);
  EXPECT_TRUE(opt.spec().groups.empty());
  EXPECT_EQ(newest[0]->type.dtype, DType::F32);
  t.step(1);
  opt.add(newest);
  EXPECT_EQ(opt.parameters().size(), 2 * count);
  t.step(2);
}

}  // namespace
}  // namespace aloft::e2e
