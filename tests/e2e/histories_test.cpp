// What eager mode records, how long it keeps it, and what it says where a history is gone: a
// gradient is right or refused, never silently zero.
#include <gtest/gtest.h>

#include "base/error.h"
#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/scale_loss.h"
#include "models/mlp.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/identity.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "optim/sgd.h"
#include "types/tolerance.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kRows = 8, kWidth = 20;

Tensor batch(int seed) { return spread(seed, {kRows, kWidth}); }

// They are not summed with those of the backward() that follows.
std::vector<double> bits_of_gradients(nn::Module& model) {
  std::vector<double> all;
  for (const VariablePtr& p : model.parameters()) {
    const Tensor g = grad_of(p);
    EXPECT_TRUE(g.is_defined()) << p->name.str();
    if (!g.is_defined()) continue;
    const std::vector<double> v = g.to_vector();
    all.insert(all.end(), v.begin(), v.end());
  }
  model.zero_grad();
  return all;
}

struct Fresh {
  Fresh() {
    use_cpu();
    omp_set_num_threads(1);
    eager().clear_tape();
    eager().forget_gradients();
    manual_seed(5);
  }
};

class Histories : public testing::Test {
 protected:
  Fresh fresh_;  // before the model
  models::Mlp model_{{kWidth, 32, 3}};
  Optimizer opt_{optim::Sgd{.lr = 0.1}, model_.parameters(), scalar::no_scaler()};

  Tensor loss(int seed) { return mean(square(model_(batch(seed)))); }
  std::vector<double> gradients_alone(int seed) {
    loss(seed).backward();
    return bits_of_gradients(model_);
  }
};

TEST_F(Histories, TwoForwardsAndTwoBackwards) {
  const auto first = gradients_alone(1), second = gradients_alone(2);
  const Tensor a = loss(1), b = loss(2);
  a.backward();
  EXPECT_EQ(bits_of_gradients(model_), first);
  b.backward();
  EXPECT_EQ(bits_of_gradients(model_), second);
}

TEST_F(Histories, TwoLossesOnOneForward) {
  const auto alone = [&](bool other) {
    const Tensor y = model_(batch(1));
    (other ? sum(y) : mean(square(y))).backward();
    return bits_of_gradients(model_);
  };
  const auto first = alone(false), second = alone(true);
  const Tensor y = model_(batch(1));
  const Tensor a = mean(square(y)), b = sum(y);
  a.backward();
  EXPECT_EQ(bits_of_gradients(model_), first);
  b.backward();
  EXPECT_EQ(bits_of_gradients(model_), second);
}

TEST_F(Histories, MinimizeOfTwoLossesComputedBefore) {
  const Tensor a = loss(1), b = loss(2);
  std::vector<double> want;
  {
    const Tensor again = loss(2);
    again.backward();
    want = bits_of_gradients(model_);
  }
  const StepResult first = minimize(a, opt_);
  const StepResult second = minimize(b, opt_);
  double squares = 0;
  for (const double g : want) squares += g * g;
  EXPECT_GT(first.grad_norm.item(), 0);
  // At the parameters of before the first update.
  const double norm = std::sqrt(squares);
  EXPECT_NEAR(second.grad_norm.item(), norm, allowed_error(DType::F32, 1, norm));
}

TEST_F(Histories, AGradientOfAGradient) {
  const Tensor x = from_floats({0.5f, -1, 2}, {3});
  Emitter& e = eager_session();
  const Tensor one = full(Shape{}, 1.0, DType::F32);
  const Tensor wrt[] = {x};
  const Tensor g = e.gradients(sum(x * x * x), one, wrt, current_where())[0];
  EXPECT_EQ(g.to_vector(), (std::vector<double>{0.75, 3, 12}));
  const Tensor h = e.gradients(sum(g), one, wrt, current_where())[0];
  EXPECT_EQ(h.to_vector(), (std::vector<double>{3, -6, 12}));
  EXPECT_EQ(e.gradients(sum(h), one, wrt, current_where())[0].to_vector(),
            (std::vector<double>{6, 6, 6}));
}

// A penalty on the gradient, as Wasserstein GANs have: through it to the parameters.
TEST_F(Histories, AGradientInALossAgreesInBothModes) {
  std::vector<std::string> states[2];
  for (const bool is_compiled : {false, true}) {
    manual_seed(5);
    models::Mlp model({kWidth, 32, 1});
    Optimizer opt(optim::Sgd{.lr = 0.1}, model.parameters(), scalar::no_scaler());
    auto step = [&](Tensor x) {
      const Tensor y = model(x), wrt[] = {x};
      const Tensor g = current_emitter().gradients(sum(y), full(Shape{}, 1.0, DType::F32), wrt,
                                                   current_where())[0];
      return minimize(mean(y) + mean(square(sum(g * g, {1}) - 1.0)), opt);
    };
    auto compiled = compile(step);
    for (int i = 0; i < 3; ++i) {
      const StepResult r = is_compiled ? compiled(batch(i)) : step(batch(i));
      EXPECT_GT(r.grad_norm.item(), 0);
    }
    for (const VariablePtr& p : model.parameters()) states[is_compiled].push_back(bytes_of(*p));
  }
  EXPECT_TRUE(states[0] == states[1]);
}

TEST_F(Histories, WhatIsNotRecordedIsRefused) {
  Tensor without;
  {
    const NoGrad no_grad;
    without = loss(1);
  }
  EXPECT_EQ(code_of([&] { minimize(without, opt_); }), "E0321");
  EXPECT_EQ(code_of([&] { without.backward(); }), "E0321");
  auto compiled = compile([&](Tensor x) { return mean(square(model_(x))); });
  EXPECT_EQ(code_of([&] { minimize(compiled(batch(1)), opt_); }), "E0321");
  EXPECT_EQ(code_of([&] { minimize(from_floats({1}, {}), opt_); }), "E0321");
  const Tensor dropped = loss(1);
  eager().clear_tape();
  EXPECT_EQ(code_of([&] { minimize(dropped, opt_); }), "E0321");
  EXPECT_EQ(code_of([&] { minimize(dropped + loss(1), opt_); }), "E0321");
  auto no_grad = compile([&](Tensor x) {
    const NoGrad none;
    const Tensor l = mean(square(model_(x)));
    return minimize(l, opt_);
  });
  EXPECT_EQ(code_of([&] { no_grad(batch(1)); }), "E0321");
}

std::string how_compiled_results_are_refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0321");
    return std::string(e.what()).find("compiled function returned") != std::string::npos
               ? "as what they are"
               : e.what();
  }
  return "not at all";
}

// A program's result is no constant: what it was computed from is hidden behind it.
TEST_F(Histories, ACompiledResultHidesParameters) {
  auto penalty = compile([&](Tensor x) { return mean(square(model_(x))); });
  const Tensor x = batch(1);
  const auto refused = how_compiled_results_are_refused;
  EXPECT_EQ(refused([&] { (loss(2) + penalty(x)).backward(); }), "as what they are");
  EXPECT_EQ(refused([&] { minimize(loss(2) + penalty(x), opt_); }), "as what they are");
  EXPECT_EQ(refused([&] { penalty(x).backward(); }), "as what they are");
  const auto alone = gradients_alone(2);
  (loss(2) + detach(penalty(x))).backward();
  EXPECT_EQ(bits_of_gradients(model_), alone);
  const auto under_no_grad = [&] {
    const NoGrad no_grad;
    return penalty(x);
  };
  (loss(2) + under_no_grad()).backward();
  EXPECT_EQ(bits_of_gradients(model_), alone);
}

// Under NoGrad a trace sees no parameters that its results hide: that holds for such calls alone.
TEST_F(Histories, ACompiledResultHidesParametersBehindACallUnderNoGrad) {
  auto penalty = compile([&](Tensor x) { return mean(square(model_(x))); });
  const Tensor x = batch(1);
  {
    const NoGrad no_grad;
    penalty(x);
  }
  EXPECT_EQ(how_compiled_results_are_refused([&] { (loss(2) + penalty(x)).backward(); }),
            "as what they are");
}

TEST_F(Histories, ACompiledResultWithoutParametersServesALoss) {
  models::Mlp frozen({kWidth, 3});
  frozen.requires_grad(false);
  auto teacher = compile([&](Tensor x) { return frozen(x); });
  auto inside = compile([&](Tensor x) {
    const NoGrad no_grad;
    return model_(x);
  });
  const Tensor x = batch(1);
  for (const Tensor& target : {teacher(x), inside(x)}) {
    mse_loss(model_(x), target).backward();
    const auto got = bits_of_gradients(model_);
    mse_loss(model_(x), from_floats(target.to_floats(), target.shape())).backward();
    EXPECT_EQ(bits_of_gradients(model_), got);
  }
}

TEST_F(Histories, ACompiledResultHidesItsArguments) {
  auto triple = compile([](Tensor x) { return x * 3.0; });
  const Tensor one = full(Shape{}, 1.0, DType::F32);
  Emitter& e = eager_session();
  const auto gradient = [&](const Tensor& of, const Tensor& x) {
    return e.gradients(of, one, std::span(&x, 1), current_where())[0].to_vector();
  };
  const Tensor x = from_floats({1, 2, 3}, {3});
  const auto refused = how_compiled_results_are_refused;
  EXPECT_EQ(refused([&] { gradient(sum(triple(x)), x); }), "as what they are");
  EXPECT_EQ(refused([&] { gradient(sum(triple(x * x)), x); }), "as what they are");
  // What is younger than its arguments it cannot hide, and itself it is a leaf.
  const Tensor u = triple(x), y = from_floats({4, 5, 6}, {3});
  EXPECT_EQ(gradient(sum(u * y), y), (std::vector<double>{3, 6, 9}));
  EXPECT_EQ(gradient(sum(u * y), u), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(gradient(sum(y * y), u), (std::vector<double>{0, 0, 0}));
}

TEST_F(Histories, WhatAStepHasUsedIsRefused) {
  const Tensor y = model_(batch(1));
  const Tensor a = mean(square(y));
  minimize(a, opt_);
  EXPECT_EQ(code_of([&] { minimize(a, opt_); }), "E0321");
  EXPECT_EQ(code_of([&] { a.backward(); }), "E0321");
  EXPECT_EQ(code_of([&] { sum(y).backward(); }), "E0321");
  EXPECT_EQ(code_of([&] { (sum(y) + loss(2)).backward(); }), "E0321");
  // Looking at them, and going on from a copy, is fine.
  EXPECT_EQ(y.to_vector().size(), static_cast<std::size_t>(kRows * 3));
  (sum(detach(y)) + loss(2)).backward();
}

// A generator's loss has discriminator's parameters behind it and stays for their optimizer, until
// the generator's goes on: what depends on it then, or is part of it, would be lost with it.
TEST_F(Histories, ALossThatGoesWithAnEarlierStepIsRefused) {
  models::Mlp other({3, 8, 1});
  Optimizer its(optim::Sgd{.lr = 0.1}, other.parameters(), scalar::no_scaler());
  const auto adversarial = [&](int seed) { return mean(square(other(model_(batch(seed))))); };
  {
    const Tensor first = adversarial(1);
    minimize(first, opt_);
    const Tensor total = first * 0.9 + adversarial(2);
    EXPECT_EQ(code_of([&] { minimize(total, opt_); }), "E0321");
    EXPECT_EQ(code_of([&] { total.backward(); }), "E0321");
    EXPECT_GT(minimize(first, its).grad_norm.item(), 0);  // nothing was forgotten
    EXPECT_GT(minimize(detach(first) * 0.9 + adversarial(2), opt_).grad_norm.item(), 0);
  }
  const Tensor part = adversarial(1), total = part + loss(2);
  minimize(total, opt_);
  EXPECT_EQ(code_of([&] { minimize(part, opt_); }), "E0321");
  EXPECT_GT(minimize(total, its).grad_norm.item(), 0);
  EXPECT_GT(minimize(adversarial(3), opt_).grad_norm.item(), 0);
}

TEST_F(Histories, ALossOfOtherParametersIsRefused) {
  models::Mlp other({kWidth, 3});
  Optimizer its(optim::Sgd{.lr = 0.1}, other.parameters(), scalar::no_scaler());
  EXPECT_EQ(code_of([&] { minimize(loss(1), its); }), "E0322");
  auto step = compile([&](Tensor x) { return minimize(mean(square(model_(x))), its); });
  EXPECT_EQ(code_of([&] { step(batch(1)); }), "E0322");
  EXPECT_EQ(code_of([&] { minimize(mean(square(detach(model_(batch(1))))), opt_); }), "E0322");
}

// A parameter that a loss does not use: its gradient is zero, and its neighbours' are right.
TEST_F(Histories, AnUnusedParameterHasAGradientOfZeros) {
  models::Mlp unused({4, 4});
  std::vector<VariablePtr> all = model_.parameters();
  for (const VariablePtr& p : unused.parameters()) all.push_back(p);
  Optimizer opt(optim::Sgd{.lr = 0.1}, all, scalar::no_scaler());
  const std::string before = bytes_of(*unused.parameters()[0]);
  EXPECT_GT(minimize(loss(1), opt).grad_norm.item(), 0);
  EXPECT_EQ(bytes_of(*unused.parameters()[0]), before);
  loss(1).backward();
  EXPECT_FALSE(grad_of(unused.parameters()[0]).is_defined());
}

// What is carried from step to step without detach() would keep every step: refused, whether it was
// computed before the step or behind it.
TEST_F(Histories, AStateThatIsCarriedIsDetached) {
  models::Mlp cell({kWidth, 32, kWidth});
  Optimizer opt(optim::Sgd{.lr = 0.1}, cell.parameters(), scalar::no_scaler());
  for (const bool is_before : {true, false})
    for (const bool is_detached : {true, false}) {
      Tensor state = batch(1);
      const auto step = [&] {
        const Tensor y = cell(state), l = mean(square(y));
        if (is_before) state = is_detached ? detach(y * 0.5) : y * 0.5;
        minimize(l, opt);
        if (!is_before) state = is_detached ? detach(y * 0.5) : y * 0.5;
      };
      step();
      const std::size_t tape = eager().tape_size();
      if (!is_detached) {
        EXPECT_EQ(code_of(step), "E0321") << is_before;
        continue;
      }
      for (int i = 0; i < 5; ++i) step();
      EXPECT_LE(eager().tape_size(), tape);
    }
}

// A sum that each step adds its loss to before it uses it up.
TEST_F(Histories, ARunningSumDoesNotGrow) {
  Tensor total = from_floats({0}, {});
  double want = 0;
  std::size_t most = 0, first = 0;
  for (int i = 0; i < 50; ++i) {
    const Tensor l = loss(i);
    total = total + l;
    want += l.item();
    minimize(l, opt_);
    most = std::max(most, eager().tape_size());
    if (i == 3) first = most;
  }
  EXPECT_LE(most, first);
  EXPECT_NEAR(total.item(), want, allowed_error(DType::F32, 50, want, want));
  EXPECT_EQ(code_of([&] { total.backward(); }), "E0321");
}

// Losses, logits and averages that a loop keeps must not keep the steps they came from.
TEST_F(Histories, ALoopThatKeepsItsResultsDoesNotGrow) {
  std::vector<Tensor> kept;
  Tensor average = from_floats({0}, {});
  std::size_t most = 0, first = 0;
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 100; ++i) {
      const Tensor y = model_(batch(i));
      const Tensor l = mean(square(y));
      const StepResult r = minimize(l, opt_);
      average = average * 0.9 + l * 0.1;
      kept.insert(kept.end(), {y, l, r.loss_tensor, r.grad_norm});
      most = std::max(most, eager().tape_size());
      if (round == 0 && i == 3) first = eager().tape_size();
    }
  EXPECT_LE(most, first + 8);
  EXPECT_LT(most, 64u);
}

TEST_F(Histories, BackwardLoopsDoNotGrowEither) {
  std::size_t most = 0;
  std::vector<Tensor> kept;
  for (int i = 0; i < 100; ++i) {
    const Tensor l = loss(i);
    l.backward();
    kept.push_back(amp::step(l, opt_).loss_tensor);
    most = std::max(most, eager().tape_size());
  }
  EXPECT_LT(most, 64u);
}

// Values of an ordinary step are gone when its update begins, whatever the user holds of them.
TEST_F(Histories, AStepsValuesAreGoneBehindItsBackward) {
  const Tensor x = batch(1);
  const Tensor y = model_(x);
  const Tensor l = mean(square(y));
  EXPECT_GT(eager().tape_size(), 4u);
  scaled_gradients(l, opt_);
  EXPECT_EQ(eager().tape_size(), 0u);
}

// What a tensor was when it was read it stays, also through a view of it.
TEST_F(Histories, AnUpdateDoesNotChangeWhatWasRead) {
  const VariablePtr w = model_.parameters()[0];
  Emitter& e = eager_session();
  const Tensor held = e.state(w), view = reshape(held, {w->type.shape.max_numel()});
  Tensor under_no_grad;
  {
    const NoGrad no_grad;
    under_no_grad = reshape(e.state(w), {w->type.shape.max_numel()});
  }
  const std::vector<double> before = held.to_vector();
  minimize(loss(1), opt_);
  EXPECT_EQ(held.to_vector(), before);
  EXPECT_EQ(view.to_vector(), before);
  EXPECT_EQ(under_no_grad.to_vector(), before);
  EXPECT_NE(e.state(w).to_vector(), before);
  auto step = compile([&](Tensor x) { return minimize(mean(square(model_(x))), opt_); });
  const std::vector<double> now = e.state(w).to_vector();
  const Tensor held_now = e.state(w);
  step(batch(2));
  step(batch(3));
  EXPECT_EQ(held_now.to_vector(), now);
}

// A compiled step between an eager loss and its backward: the loss still is at the old values.
TEST_F(Histories, ACompiledStepBetweenForwardAndBackward) {
  const auto want = gradients_alone(1);
  const Tensor l = loss(1);
  auto step = compile([&](Tensor x) { return minimize(mean(square(model_(x))), opt_); });
  step(batch(2));
  l.backward();
  EXPECT_EQ(bits_of_gradients(model_), want);
  step(batch(2));
  EXPECT_NE(gradients_alone(1), want);
}

}  // namespace
}  // namespace aloft::e2e
