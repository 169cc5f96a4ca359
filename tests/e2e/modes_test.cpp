// What compiled functions are traced under: train() and eval(), precision, who calls. A call after
// a change computes what eager code computes.
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "nn/batch_norm.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "numbers.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/dropout.h"
#include "ops/matmul.h"
#include "ops/random.h"
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

void elsewhere(const std::function<void()>& f) {
  std::thread other([&] {
    omp_set_num_threads(1);
    f();
  });
  other.join();
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

// What it finds in the next call is what it left, as eagerly.
TEST_F(Modes, AFunctionMayLeaveAnotherModeThanItFound) {
  std::vector<std::vector<double>> results[2];
  for (const bool is_compiled : {false, true}) {
    manual_seed(2);
    nn::Module root;
    nn::Dropout drop(root, "drop", 0.5);
    const auto f = [&](Tensor x) {
      const Tensor a = drop(x);
      drop.eval();
      const Tensor b = drop(x);
      drop.train();
      return a + b;
    };
    auto compiled = compile(f);
    drop.eval();
    for (int i = 0; i < 4; ++i) {
      const Tensor x = numbers({8, 6}, static_cast<float>(i));
      results[is_compiled].push_back((is_compiled ? compiled(x) : f(x)).to_vector());
    }
    if (is_compiled) {
      EXPECT_EQ(compiled.programs().plan().programs.size(), 2u);
    }
  }
  EXPECT_EQ(results[0], results[1]);
}

// A product of square matrices is traced twice, and the first trace comes to eval().
TEST_F(Modes, ASecondTraceBeginsInTheModesOfTheFirst) {
  std::vector<double> results[2];
  for (const bool is_compiled : {false, true}) {
    manual_seed(2);
    nn::Module root;
    nn::Dropout drop(root, "drop", 0.5);
    const auto f = [&](Tensor x) {
      const Tensor y = drop(x);
      drop.eval();
      return matmul(y, drop(x));
    };
    const Tensor x = numbers({6, 6});
    results[is_compiled] = (is_compiled ? compile(f)(x) : f(x)).to_vector();
    EXPECT_FALSE(drop.is_training());
  }
  EXPECT_EQ(results[0], results[1]);
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

TEST_F(Modes, AStepThatAllowsItselfGradientsRunsUnderNoGrad) {
  std::map<std::string, std::string> states[2];
  for (const bool is_compiled : {false, true}) {
    manual_seed(3);
    nn::Module root;
    nn::Linear layer(root, "layer", 4, 2);
    auto [net, opt] = amp::initialize(layer, optim::Sgd{.lr = 0.01}, "O0");
    const auto step = [&, &net = net, &opt = opt](Tensor x) {
      const WithGrad with_grad;
      return minimize(mean(net(x)), opt);
    };
    auto compiled = compile(step);
    for (int i = 0; i < 3; ++i) {
      const NoGrad no_grad;
      const Tensor x = numbers({8, 4}, static_cast<float>(i));
      is_compiled ? compiled(x) : step(x);
    }
    if (is_compiled) {
      EXPECT_EQ(compiled.programs().plan().programs.size(), 1u);
    }
    states[is_compiled] = state_of(layer, opt);
  }
  EXPECT_EQ(states[0], states[1]);
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

// --- random draws

// Calls of either kind, in any order, draw what as many eager calls draw.
TEST_F(Modes, CompiledCallsDrawOnAsEagerOnesDo) {
  nn::Module root;
  nn::Dropout one(root, "one", 0.5), two(root, "two", 0.25);
  const auto f = [&](Tensor x) { return two(one(one(x))) + one(x); };
  const Tensor x = numbers({8, 20});
  const auto calls = [&](const std::vector<bool>& is_compiled) {
    auto compiled = compile(f);
    manual_seed(5);
    std::vector<std::vector<double>> results;
    for (const bool c : is_compiled) results.push_back((c ? compiled(x) : f(x)).to_vector());
    return results;
  };
  const auto eagerly = calls({false, false, false, false});
  for (std::size_t i = 1; i < eagerly.size(); ++i) EXPECT_NE(eagerly[i], eagerly[0]);
  EXPECT_EQ(calls({true, true, true, true}), eagerly);
  EXPECT_EQ(calls({true, false, true, false}), eagerly);
  EXPECT_EQ(calls({false, true, false, true}), eagerly);
}

TEST_F(Modes, FunctionsThatShareADropoutDrawInTurn) {
  nn::Module root;
  nn::Dropout drop(root, "drop", 0.5);
  const auto f = [&](Tensor x) { return drop(x); };
  const auto g = [&](Tensor x) { return drop(x) * 2.0; };
  auto compiled_f = compile(f);
  auto compiled_g = compile(g);
  std::vector<std::vector<double>> results[2];
  for (const bool is_compiled : {false, true}) {
    manual_seed(9);
    for (const std::int64_t rows : {8, 3, 8}) {
      const Tensor x = numbers({rows, 20});
      results[is_compiled].push_back((is_compiled ? compiled_f(x) : f(x)).to_vector());
      if (rows == 3) manual_seed(9);  // begins anew
      results[is_compiled].push_back((is_compiled ? compiled_g(x) : g(x)).to_vector());
    }
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(Modes, DrawsAroundAndBehindAStep) {
  for (const char* precision : {"O0", "O1:bf16"}) {
    std::vector<std::vector<double>> results[2];
    std::map<std::string, std::string> states[2];
    for (const bool is_compiled : {false, true}) {
      manual_seed(3);
      Net model;
      auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.01}, precision);
      const auto forward = [&, &net = net](Tensor x) { return net(x); };
      const auto step = [&, &net = net, &opt = opt](Tensor x) {
        minimize(mean(net(x)), opt);
        return std::vector<Tensor>{net(x), net(x)};  // of the next step's numbers
      };
      auto compiled_forward = compile(forward);
      auto compiled_step = compile(step);
      const Tensor x = numbers({8, 4});
      for (int i = 0; i < 4; ++i) {
        for (int k = 0; k < i; ++k)
          results[is_compiled].push_back(
              (is_compiled ? compiled_forward(x) : forward(x)).to_vector());
        for (const Tensor& t : is_compiled ? compiled_step(x) : step(x))
          results[is_compiled].push_back(t.to_vector());
      }
      states[is_compiled] = state_of(model, opt);
    }
    EXPECT_EQ(results[0], results[1]) << precision;
    EXPECT_EQ(states[0], states[1]) << precision;
  }
}

// An rng of the caller's: what is drawn from it follows from it and from the place alone, whatever
// was drawn before.
TEST_F(Modes, AnRngThatIsPassedIsAllThatCounts) {
  const auto f = [](Tensor x, Tensor rng) {
    return dropout(x, rng, 0.5) + random_uniform(rng, {4, 6}) + random_normal(rng, {4, 6}) +
           dropout(x, current_emitter().state(random_state()), 0.5);
  };
  auto compiled = compile(f, {.partial_batches = false});
  const Tensor x = numbers({4, 6}), rng = from_int64s({7, 0, 0}, {3});
  std::vector<std::vector<double>> results[2];
  for (const bool is_compiled : {false, true}) {
    manual_seed(6);
    for (const std::int64_t seed : {7, 7, 8, 7}) {
      const Tensor own = from_int64s({seed, 0, 0}, {3});
      results[is_compiled].push_back((is_compiled ? compiled(x, own) : f(x, own)).to_vector());
    }
    const auto drawn = random_normal(rng, {4, 6}).to_vector();
    EXPECT_EQ(random_normal(rng, {4, 6}).to_vector(), drawn);
    EXPECT_EQ(compile([](Tensor r) { return random_normal(r, {4, 6}); })(rng).to_vector(), drawn);
    EXPECT_NE(random_normal(from_int64s({8, 0, 0}, {3}), {4, 6}).to_vector(), drawn);
  }
  EXPECT_NE(results[0][0], results[0][1]);  // the random state counts on
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(Modes, AnEmptyRngIsRefused) {
  for (const auto& draw : std::vector<std::function<void()>>{
           [] { random_uniform(Tensor(), {2}); },
           [] {
             dropout(numbers({2, 2}), Tensor(), 0.5);
           },
           [] { dropout(Tensor(), current_emitter().state(random_state()), 0.5); },
       })
    EXPECT_THROW(draw(), UserError);
}

// Every thread has a random state of its own: a step draws from, and advances, that of its caller.
TEST_F(Modes, StepsDrawFromTheCallingThread) {
  std::vector<double> losses[2];
  std::vector<std::int64_t> positions[2];
  std::map<std::string, std::string> states[2];
  for (const bool is_compiled : {false, true}) {
    manual_seed(3);
    Net model;
    auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.01}, "O0");
    const auto step = [&, &net = net, &opt = opt](Tensor x) { return minimize(mean(net(x)), opt); };
    auto compiled = compile(step);
    const auto call = [&] {
      const Tensor x = numbers({8, 4});
      losses[is_compiled].push_back((is_compiled ? compiled(x) : step(x)).loss());
      positions[is_compiled].push_back(random_position());
    };
    call();
    for (const std::uint64_t seed : {3, 8})
      elsewhere([&] {
        manual_seed(seed);
        call();
        call();
      });
    call();
    states[is_compiled] = state_of(model, opt);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(positions[0], positions[1]);
  EXPECT_EQ(states[0], states[1]);
}

// What only draws takes its numbers from whoever calls.
TEST_F(Modes, AFunctionThatOnlyDrawsServesAllThreads) {
  nn::Module root;
  nn::Dropout drop(root, "drop", 0.5);
  auto compiled = compile([&](Tensor x) { return drop(x); });
  std::vector<std::vector<double>> results[2];
  for (const bool is_compiled : {false, true})
    for (const std::uint64_t seed : {4, 5})
      elsewhere([&] {
        manual_seed(seed);
        const Tensor x = numbers({8, 20});
        results[is_compiled].push_back((is_compiled ? compiled(x) : drop(x)).to_vector());
      });
  EXPECT_NE(results[0][0], results[0][1]);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(compiled.programs().plan().programs.size(), 1u);
}

TEST_F(Modes, RandomTensorsDrawOnToo) {
  const auto f = [](Tensor x) {
    const Tensor rng = current_emitter().state(random_state());
    return x + random_uniform(rng, {4, 6}) + random_normal(rng, {4, 6}) * 0.5 +
           random_uniform(rng, {4, 6});
  };
  auto compiled = compile(f, {.partial_batches = false});
  std::vector<std::vector<double>> results[2];
  for (const bool is_compiled : {false, true}) {
    manual_seed(6);
    for (int i = 0; i < 3; ++i) {
      const Tensor x = numbers({4, 6});
      results[is_compiled].push_back((is_compiled ? compiled(x) : f(x)).to_vector());
    }
  }
  EXPECT_NE(results[0][0], results[0][1]);
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace aloft::e2e
