// A variable is itself, not its name: models, optimizers and moments of equal names train side by
// side. And a program means the same in both modes where it updates variables more than once.
#include <gtest/gtest.h>

#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "models/mlp.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/dropout.h"
#include "ops/identity.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "optim/adam.h"
#include "optim/adamw.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kRows = 8, kNoise = 6, kData = 20;

void start() {
  use_cpu();
  eager().clear_tape();
  omp_set_num_threads(1);
  manual_seed(4);
}

using State = std::vector<std::string>;

template <class Model>
void append(State& state, const Model& model, const Optimizer& opt) {
  for (const VariablePtr& v : model.parameters()) state.push_back(bytes_of(*v));
  for (const VariablePtr& v : opt.state()) state.push_back(bytes_of(*v));
}

// A generator and a discriminator, both with "0.weight", each with its own Adam.
struct Gan {
  models::Mlp generator{{kNoise, 16, kData}}, discriminator{{kData, 24, 1}};

  // `order` 0: one after the other, the second forward with the new discriminator; 1: both losses
  // on one forward, then both updates.
  State train(const std::string& precision, bool is_compiled, int order, int steps,
              std::vector<double>* losses = nullptr) {
    auto [g, g_opt] = amp::initialize(generator, optim::AdamW{.lr = 1e-2}, precision);
    auto [d, d_opt] = amp::initialize(discriminator, optim::Adam{.lr = 2e-2}, precision);
    auto step = [&, &g = g, &g_opt = g_opt, &d = d, &d_opt = d_opt](Tensor noise, Tensor real) {
      const Tensor fake = g(noise);
      const Tensor on_fake = d(fake);
      const Tensor d_loss = mean(square(on_fake)) - mean(d(real));
      if (order == 1) {
        const Tensor g_loss = mean(on_fake);
        const StepResult a = minimize(d_loss, d_opt), b = minimize(g_loss, g_opt);
        return std::vector<Tensor>{a.loss_tensor, b.loss_tensor, a.grad_norm, b.grad_norm};
      }
      const StepResult a = minimize(d_loss, d_opt);
      const StepResult b = minimize(mean(square(d(fake))), g_opt);
      return std::vector<Tensor>{a.loss_tensor, b.loss_tensor, a.grad_norm, b.grad_norm};
    };
    auto compiled = compile(step);
    for (int i = 0; i < steps; ++i) {
      const Tensor noise = spread(i, {kRows, kNoise}), real = spread(i + 50, {kRows, kData});
      for (const Tensor& t : is_compiled ? compiled(noise, real) : step(noise, real))
        if (losses) losses->push_back(t.item());
    }
    State state;
    append(state, generator, g_opt);
    append(state, discriminator, d_opt);
    return state;
  }
};

class TwoModels : public testing::TestWithParam<const char*> {};

TEST_P(TwoModels, AGanTrainsAlikeInBothModes) {
  for (const int order : {0, 1}) {
    State states[2];
    std::vector<double> losses[2];
    for (const bool is_compiled : {false, true}) {
      start();
      Gan gan;
      const std::string g0 = bytes_of(*gan.generator.parameters()[0]);
      states[is_compiled] = gan.train(GetParam(), is_compiled, order, 6, &losses[is_compiled]);
      EXPECT_NE(states[is_compiled][0], g0) << "the generator never moved";
    }
    EXPECT_EQ(losses[0], losses[1]) << "order " << order;
    EXPECT_TRUE(states[0] == states[1]) << "order " << order;
    for (std::size_t i = 0; i < losses[0].size(); i += 4) {
      EXPECT_GT(losses[0][i + 2], 0);
      EXPECT_GT(losses[0][i + 3], 0);
    }
  }
}

// The second model trains as it does alone.
TEST_P(TwoModels, OneBesideAnotherIsAsAlone) {
  State alone, beside;
  for (const bool has_other : {false, true})
    for (const bool is_compiled : {false, true}) {
      start();
      models::Mlp one({kData, 24, 3}), other({kData, 10, 3});
      auto [net, opt] = amp::initialize(one, optim::AdamW{.lr = 1e-2}, GetParam());
      auto [net2, opt2] = amp::initialize(other, optim::AdamW{.lr = 3e-2}, GetParam());
      auto step = [&, &net = net, &opt = opt, &net2 = net2, &opt2 = opt2](Tensor x) {
        if (has_other) minimize(mean(square(net2(x))), opt2);
        return minimize(mean(square(net(x))), opt).loss_tensor;
      };
      auto compiled = compile(step);
      for (int i = 0; i < 4; ++i) {
        const Tensor x = spread(i, {kRows, kData});
        is_compiled ? compiled(x) : step(x);
      }
      State now;
      append(now, one, opt);
      State& first = has_other ? beside : alone;
      if (first.empty()) first = now;
      EXPECT_TRUE(first == now) << "eager and compiled differ";
    }
  EXPECT_TRUE(alone == beside);
}

// minimize(a), minimize(b) with both losses computed before: b's gradient is at the old parameters,
// its update begins at the new ones.
TEST_P(TwoModels, TwoUpdatesOfOneModelInAStep) {
  State states[2];
  std::vector<double> norms[2];
  for (const bool is_compiled : {false, true}) {
    start();
    models::Mlp model({kData, 24, 3});
    auto [net, one] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, GetParam());
    Optimizer two(optim::Sgd{.lr = 5e-2}, model.parameters(), scalar::no_scaler());
    auto step = [&, &net = net, &one = one](Tensor x, Tensor y) {
      const Tensor a = mean(square(net(x))), b = mean(net(y));
      const StepResult first = minimize(a, one), second = minimize(b, two);
      // And a third time, at the new values, of old and new ones at once.
      const StepResult third = minimize(mean(square(net(y))), two);
      return std::vector<Tensor>{first.grad_norm, second.grad_norm, third.grad_norm};
    };
    auto compiled = compile(step);
    for (int i = 0; i < 4; ++i) {
      const Tensor x = spread(i, {kRows, kData}), y = spread(i + 9, {kRows, kData});
      for (const Tensor& t : is_compiled ? compiled(x, y) : step(x, y))
        norms[is_compiled].push_back(t.item());
    }
    append(states[is_compiled], model, one);
  }
  EXPECT_EQ(norms[0], norms[1]);
  for (const double n : norms[0]) EXPECT_GT(n, 0);
  EXPECT_TRUE(states[0] == states[1]);
}

// The one unfreezes a part and gives it masters; programs of the other were compiled without them.
TEST(TwoOptimizers, AMasterThatOneGivesIsTheOthersToo) {
  for (const char* precision : {"O2:bf16", "O2:fp16", "O3:bf16"}) {
    State states[2];
    for (const bool is_compiled : {false, true}) {
      start();
      models::Mlp model({kData, 24, 3});
      model.requires_grad(false, "1.*");
      auto [net, one] = amp::initialize(model, optim::Sgd{.lr = 1e-2}, precision);
      model.requires_grad(true);
      Optimizer two(optim::Sgd{.lr = 5e-2}, model.parameters(), scalar::no_scaler());
      const auto step_of = [&net = net](Optimizer& opt) {
        return [&](Tensor x) { return minimize(mean(square(net(x))), opt).loss_tensor; };
      };
      auto first = step_of(one), second = step_of(two);
      auto compiled_first = compile(first), compiled_second = compile(second);
      for (int i = 0; i < 8; ++i) {
        const Tensor x = spread(i, {kRows, kData});
        if (i % 2 == 0)
          is_compiled ? compiled_second(x) : second(x);
        else
          is_compiled ? compiled_first(x) : first(x);
      }
      if (is_compiled) {
        EXPECT_LE(compiled_second.programs().plan().programs.size(), 2u);
      }
      append(states[is_compiled], model, one);
      append(states[is_compiled], model, two);
    }
    EXPECT_TRUE(states[0] == states[1]) << precision;
  }
}

// Models of any precision under one optimizer: each keeps its masters in its own form.
TEST(TwoOptimizers, OneTrainsModelsWithMastersOfAnyForm) {
  State want;
  for (const StateFormat form : {StateFormat::F32, StateFormat::Split})
    for (const bool is_compiled : {false, true}) {
      start();
      models::Mlp a({kData, 24, 3}), b({kData, 10, 3}), c({kData, 3});
      const optim::AdamW rule{.lr = 1e-2};
      OptimizerSpec spec = rule;
      spec.master = form;
      auto [net_a, opt_a] = amp::initialize(a, spec, "O2:bf16");
      auto [net_b, opt_b] = amp::initialize(b, rule, "O2:bf16");
      auto [net_c, opt_c] = amp::initialize(c, rule, "O2:fp16");
      std::vector<VariablePtr> all;
      for (const nn::Module* m : {static_cast<nn::Module*>(&a), static_cast<nn::Module*>(&b),
                                  static_cast<nn::Module*>(&c)})
        for (const VariablePtr& p : m->parameters()) all.push_back(p);
      Optimizer opt(rule, all, scalar::no_scaler());
      const auto step = [&, &net_a = net_a, &net_b = net_b, &net_c = net_c](Tensor x) {
        return minimize(mean(square(net_a(x) + net_b(x) + net_c(x))), opt).loss_tensor;
      };
      auto compiled = compile(step);
      for (int i = 0; i < 4; ++i) {
        const Tensor x = spread(i, {kRows, kData});
        is_compiled ? compiled(x) : step(x);
      }
      State now;
      for (const VariablePtr& p : all) now.push_back(bytes_of(*p));
      if (want.empty()) want = now;
      EXPECT_TRUE(now == want) << static_cast<int>(form) << is_compiled;
    }
}

INSTANTIATE_TEST_SUITE_P(All, TwoModels, testing::Values("O0", "O1:bf16"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

VariablePtr parameter(const std::string& name, const std::vector<float>& values) {
  auto v = std::make_shared<Variable>();
  v->name = name;
  v->type = {DType::F32, {static_cast<std::int64_t>(values.size())}};
  nn::allocate(*v);
  std::ranges::copy(values, v->buffer->write<float>().begin());
  return v;
}

std::vector<float> many(float value) { return std::vector<float>(64, value); }

// loss = sum(w * w): what the gradient 2 w of each says which value of w it was taken at.
TEST(ProgramOrder, AReadBehindAnUpdateHasTheNewValueInBothModes) {
  for (const bool is_compiled : {false, true}) {
    start();
    const VariablePtr w = parameter("w", many(3));
    auto program = [&](Tensor x) {
      Emitter& e = current_emitter();
      const Tensor old = e.state(w);
      const Tensor before = sum(old * x);
      e.update(w, old + 1.0);
      const Tensor now = e.state(w);
      e.update(w, now * 2.0);
      // A tensor that was read keeps its value.
      return std::vector<Tensor>{before, sum(old * x), sum(now * x), sum(e.state(w) * x)};
    };
    const Tensor x = from_floats(many(1), {64});
    auto compiled = compile(program, {.partial_batches = false});
    std::vector<double> seen;
    for (const Tensor& t : is_compiled ? compiled(x) : program(x)) seen.push_back(t.item());
    EXPECT_EQ(seen, (std::vector<double>{192, 192, 256, 512})) << is_compiled;
    EXPECT_EQ(w->buffer->read_one<float>(), 8);
  }
}

// One loss that has read a variable before and behind its update: both uses count.
TEST(ProgramOrder, AGradientIsTheSumOverAVariablesValues) {
  for (const bool is_compiled : {false, true}) {
    start();
    const VariablePtr w = parameter("w", many(3)), other = parameter("w", many(1));
    Optimizer first(optim::Sgd{.lr = 1}, {w}, scalar::no_scaler());
    Optimizer both(optim::Sgd{.lr = 1}, {w, other}, scalar::no_scaler());
    auto program = [&](Tensor x) {
      Emitter& e = current_emitter();
      const Tensor square_of_old = sum(e.state(w) * e.state(w)) * 0.5;  // gradient 3
      minimize(sum(e.state(w) * x), first);                             // w = 3 - 1
      const Tensor loss = square_of_old + sum(e.state(w) * e.state(w)) + sum(e.state(other) * 4.0);
      minimize(loss, both);  // gradient 3 + 2 * 2: w = 2 - 7
      return loss;
    };
    const Tensor x = from_floats(many(1), {64});
    auto compiled = compile(program, {.partial_batches = false});
    is_compiled ? compiled(x) : program(x);
    EXPECT_EQ(w->buffer->read_one<float>(), -5) << is_compiled;
    EXPECT_EQ(other->buffer->read_one<float>(), -3) << is_compiled;
  }
}

// Random numbers: what is drawn behind a step within one program is the same in both modes, in
// later calls too.
TEST(ProgramOrder, DrawsAgreeInBothModes) {
  std::vector<double> drawn[2];
  for (const bool is_compiled : {false, true}) {
    start();
    models::Mlp model({kData, 24, 3});
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O0");
    auto step = [&, &net = net, &opt = opt](Tensor x) {
      const auto drop = [&] { return dropout(x, current_emitter().state(random_state()), 0.5); };
      const Tensor a = drop(), b = drop();
      minimize(mean(square(net(a + b))), opt);
      const Tensor c = drop();
      minimize(mean(square(net(c))), opt);
      return std::vector<Tensor>{sum(a), sum(b), sum(c)};
    };
    auto compiled = compile(step);
    for (int i = 0; i < 3; ++i) {
      const Tensor x = spread(i, {kRows, kData});
      for (const Tensor& t : is_compiled ? compiled(x) : step(x))
        drawn[is_compiled].push_back(t.item());
    }
  }
  EXPECT_EQ(drawn[0], drawn[1]);
}

TEST(ProgramOrder, WhatIsComputedUnderNoGradHasNoGradientInBothModes) {
  for (const bool is_compiled : {false, true}) {
    start();
    const VariablePtr w = parameter("w", many(3));
    Optimizer opt(optim::Sgd{.lr = 1}, {w}, scalar::no_scaler());
    auto program = [&](Tensor x) {
      Tensor constant;
      {
        const NoGrad no_grad;
        constant = current_emitter().state(w) * x;
      }
      const Tensor loss = sum(constant * current_emitter().state(w)), wrt[] = {constant};
      const Tensor g = current_emitter().gradients(loss, full(Shape{}, 1.0, DType::F32), wrt,
                                                   current_where())[0];
      minimize(loss, opt);  // gradient 3, not 6
      return sum(g);
    };
    auto compiled = compile(program, {.partial_batches = false});
    const Tensor x = from_floats(many(1), {64});
    const Tensor g = is_compiled ? compiled(x) : program(x);
    EXPECT_EQ(g.item(), 64 * 3);  // it can be asked for its own
    EXPECT_EQ(w->buffer->read_one<float>(), 0) << is_compiled;
  }
}

}  // namespace
}  // namespace aloft::e2e
