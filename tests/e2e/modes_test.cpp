// What compiled functions are traced under: train() and eval(), precision, who calls. A call after
// a change computes what eager code computes.
#include <gtest/gtest.h>

#include "e2e/training.h"
#include "nn/batch_norm.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

class Modes : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    omp_set_num_threads(1);
    eager().clear_tape();
    manual_seed(1);
  }
};

Tensor numbers(const Shape& shape, float first = 1) {
  std::vector<float> values(static_cast<std::size_t>(shape.max_numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i) / 8;
  return from_floats(values, shape);
}

TEST_F(Modes, DropoutFollowsTrainAndEval) {
  nn::Module root;
  nn::Dropout drop(root, "drop", 0.5);
  auto f = compile([&](Tensor x) { return drop(x); });
  const Tensor x = numbers({4, 16});
  EXPECT_NE(f(x).to_vector(), x.to_vector());
  drop.eval();
  EXPECT_EQ(f(x).to_vector(), x.to_vector());
  drop.train();
  EXPECT_NE(f(x).to_vector(), x.to_vector());
  EXPECT_EQ(f.programs().plan().programs.size(), 2u);  // both are kept
  root.eval();
  auto late = compile([&](Tensor t) { return drop(t); });
  EXPECT_EQ(late(x).to_vector(), x.to_vector());
  root.train();
  EXPECT_NE(late(x).to_vector(), x.to_vector());
}

TEST_F(Modes, RunningStatisticsStandStillInEval) {
  std::vector<std::vector<double>> results[2];
  std::vector<std::string> statistics[2];
  for (const bool is_compiled : {false, true}) {
    nn::Module root;
    nn::BatchNorm2d norm(root, "norm", 3);
    const auto f = [&](Tensor x) { return norm(x); };
    auto compiled = compile(f);
    for (const bool trains : {true, false, false, true, false}) {
      root.train(trains);
      const Tensor x = numbers({4, 3, 2, 2}, static_cast<float>(results[is_compiled].size()));
      const std::string before = bytes_of(*norm.running_mean);
      results[is_compiled].push_back((is_compiled ? compiled(x) : f(x)).to_vector());
      EXPECT_EQ(bytes_of(*norm.running_mean) != before, trains);
      statistics[is_compiled].push_back(bytes_of(*norm.running_mean) + bytes_of(*norm.running_var));
    }
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(statistics[0], statistics[1]);
}

// 4 inputs, two layers and a norm between them.
struct Net : nn::Module {
  nn::Linear in{*this, "in", 4, 12};
  nn::BatchNorm2d norm{*this, "norm", 3};
  nn::Dropout drop{*this, "drop", 0.25};
  nn::Linear out{*this, "out", 12, 2};
  Tensor operator()(Tensor x) {
    const Dim rows = x.dim(0);
    return out(drop(reshape(norm(reshape(in(x), {rows, 3, 2, 2})), {rows, 12})));
  }
};

TEST_F(Modes, TrainingStepsFollowTrainAndEval) {
  for (const char* precision : {"O0", "O2:bf16"}) {
    const auto states = [&](bool is_compiled) {
      manual_seed(3);
      Net model;
      auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.01}, precision);
      const auto step = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
        const Tensor d = net(x) - y;
        return minimize(mean(d * d), opt);
      };
      auto compiled = compile(step);
      for (const bool trains : {true, true, false, false, true, false}) {
        model.train(trains);
        const Tensor x = numbers({8, 4}), y = numbers({8, 2}, -1);
        is_compiled ? compiled(x, y) : step(x, y);
      }
      return state_of(model, opt);
    };
    EXPECT_EQ(states(true), states(false)) << precision;
  }
}

TEST_F(Modes, ModesAndBatchesTogether) {
  nn::Module root;
  nn::Dropout drop(root, "drop", 0.5);
  int traces = 0;
  auto f = compile([&](Tensor x) {
    ++traces;
    return drop(x) + 1.0;
  });
  for (const bool trains : {true, false, true, false})
    for (const std::int64_t rows : {4, 8, 3}) {
      root.train(trains);
      const Tensor x = numbers({rows, 6});
      const bool is_same = f(x).to_vector() == (x + 1.0).to_vector();
      EXPECT_EQ(is_same, !trains) << rows;
    }
  // Each mode's program of 4 rows was replaced by the one of 8, in that mode alone.
  EXPECT_EQ(traces, 4);
  EXPECT_EQ(f.programs().plan().programs.size(), 2u);
}

TEST_F(Modes, WhatNobodyAsksForIsNotCompiledFor) {
  nn::Module root;
  nn::Linear layer(root, "layer", 4, 4);
  int traces = 0;
  auto f = compile([&](Tensor x) {
    ++traces;
    return layer(x);
  });
  for (const bool trains : {true, false, true}) {
    root.train(trains);
    f(numbers({4, 4}));
  }
  EXPECT_EQ(traces, 1);
}

TEST_F(Modes, AFunctionMaySetTheModeItself) {
  nn::Module root;
  nn::Dropout drop(root, "drop", 0.5);
  int traces = 0;
  auto f = compile([&](Tensor x) {
    ++traces;
    drop.eval();
    const Tensor y = drop(x);
    drop.train();
    return y * 2.0;
  });
  const Tensor x = numbers({4, 4});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).to_vector(), (x * 2.0).to_vector());
  EXPECT_EQ(traces, 1);
}

TEST_F(Modes, AFunctionOutlivesItsModules) {
  auto root = std::make_unique<nn::Module>();
  auto drop = std::make_unique<nn::Dropout>(*root, "drop", 0.5);
  root->eval();
  auto f = compile([&](Tensor x) { return (*drop)(x)*2.0; });
  const Tensor x = numbers({4, 4});
  f(x);
  drop.reset();
  root.reset();
  EXPECT_EQ(f(x).to_vector(), (x * 2.0).to_vector());
}

TEST_F(Modes, APrecisionSetLaterIsCompiledFor) {
  for (const char* precision : {"O1:bf16", "O2:bf16", "O3:bf16"}) {
    std::vector<double> results[2];
    for (const bool is_compiled : {false, true}) {
      manual_seed(3);
      nn::Module root;
      nn::Linear layer(root, "layer", 40, 30);
      const auto f = [&](Tensor x) { return layer(x); };
      auto compiled = compile(f);
      const Tensor x = numbers({8, 40}, -3);
      compiled(x);
      auto [net, opt] = amp::initialize(layer, optim::Sgd{.lr = 0.01}, precision);
      results[is_compiled] = is_compiled ? compiled(x).to_vector() : f(x).to_vector();
    }
    EXPECT_EQ(results[0], results[1]) << precision;
  }
}

TEST_F(Modes, AStepUnderNoGradIsRefusedAsEagerly) {
  nn::Module root;
  nn::Linear layer(root, "layer", 4, 2);
  auto [net, opt] = amp::initialize(layer, optim::Sgd{.lr = 0.01}, "O0");
  const auto step = [&, &net = net, &opt = opt](Tensor x) { return minimize(mean(net(x)), opt); };
  auto compiled = compile(step);
  const Tensor x = numbers({8, 4});
  compiled(x);
  const std::string before = bytes_of(*layer.weight);
  {
    const NoGrad no_grad;
    EXPECT_THROW(step(x), UserError);
    EXPECT_THROW(compiled(x), UserError);
  }
  EXPECT_EQ(bytes_of(*layer.weight), before);
  compiled(x);
  EXPECT_NE(bytes_of(*layer.weight), before);
}

TEST_F(Modes, TheModuleAroundACallCounts) {
  nn::Module root;
  nn::Dropout drop(root, "drop", 0.5);
  const auto f = [&](Tensor x) { return drop(x); };
  auto compiled = compile(f);
  const Tensor x = numbers({4, 16});
  for (const char* place : {"a", "b", "a"}) {
    const ModuleScope scope(place);
    manual_seed(4);
    const std::vector<double> eagerly = f(x).to_vector();
    manual_seed(4);
    EXPECT_EQ(compiled(x).to_vector(), eagerly) << place;
  }
}

}  // namespace
}  // namespace aloft::e2e
