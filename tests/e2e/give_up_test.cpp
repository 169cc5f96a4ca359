// Overflows in C++ loops: who is named, and when it ends.
#include "frontend/give_up.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/grad_scaler.h"
#include "frontend/scale_loss.h"
#include "frontend/value_and_grad.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/linear.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "optim/adam.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

// Registered in another order than used, and one parameter used twice, first and last.
struct Odd : nn::Module {
  VariablePtr last = add("last"), shared = add("shared"), first = add("first"), mid = add("mid");

  VariablePtr add(const char* name) {
    return add_parameter(name, {4}, [](float* p, std::int64_t n) { std::fill(p, p + n, 1.0f); });
  }
  // shared, first, mid, last, shared; the gradient of `name` is times `poison`.
  Tensor operator()(const Tensor& x, const Tensor& poison, const std::string& name) const {
    const auto used = [&](const VariablePtr& v) {
      const Tensor w = use(v);
      return v->name.str() == name ? w * poison : w;
    };
    Tensor h = used(shared) + x;  // one op a line: C++ does not say which operand comes first
    h = h * used(first);
    h = h + used(mid);
    h = h * used(last);
    return mean(h + use(shared));
  }
};

void start() {
  use_cpu();
  eager().clear_tape();
  eager().forget_gradients();
  omp_set_num_threads(1);
  manual_seed(1);
}

std::string culprit_of(const std::string& poisoned, bool is_compiled, const std::string& precision,
                       UpdateTime update) {
  start();
  Odd model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.1, .update = update}, precision);
  auto step = [&, &opt = opt](Tensor x, Tensor poison) {
    ModuleScope scope("", model.policy());
    return minimize(model(x, poison, poisoned), opt);
  };
  auto compiled = compile(step, {.partial_batches = false});
  const Tensor x = from_floats({1, 2, 3, 4}, {4});
  const Tensor poison = from_floats({std::numeric_limits<float>::infinity()}, {});
  const StepResult r = is_compiled ? compiled(x, poison) : step(x, poison);
  EXPECT_TRUE(r.skipped());
  return culprit_names(opt).at(static_cast<std::size_t>(r.culprit.item()));
}

// The backward pass completes last, then mid, first and shared. Poison in the forward spreads to
// all behind it, so that everything's gradient is infinite or NaN but what comes before.
TEST(Culprit, IsTheFirstOfTheBackwardPass) {
  for (const UpdateTime update : {UpdateTime::Late, UpdateTime::Early})
    for (const char* precision : {"O0", "O1:bf16", "O2:bf16"})
      for (const bool is_compiled : {false, true}) {
        EXPECT_EQ(culprit_of("mid", is_compiled, precision, update), "last");
        EXPECT_EQ(culprit_of("first", is_compiled, precision, update), "last");
        EXPECT_EQ(culprit_of("last", is_compiled, precision, update), "last");
      }
}

// Two infinite gradients that do not meet: of those registered the other way round, and of one that
// is used before and behind.
struct Apart : nn::Module {
  VariablePtr c = add("c"), a = add("a"), b = add("b");
  VariablePtr add(const char* name) {
    return add_parameter(name, {4}, [](float* p, std::int64_t n) { std::fill(p, p + n, 1.0f); });
  }
};

TEST(Culprit, FollowsTheUseNotTheRegistration) {
  const float inf = std::numeric_limits<float>::infinity();
  struct Case {
    std::string uses;      // parameters in the order in which the loss uses them
    std::string infinite;  // those whose gradient is infinite
    std::string culprit;
  };
  const Case cases[] = {{"abc", "ab", "b"},  {"cba", "ab", "a"},  {"bac", "abc", "c"},
                        {"acb", "ac", "c"},  {"abca", "ab", "b"}, {"abca", "ac", "c"},
                        {"abcb", "bc", "c"}, {"cabc", "bc", "b"}, {"cabc", "c", "c"}};
  for (const Case& one : cases)
    for (const bool is_compiled : {false, true}) {
      start();
      Apart model;
      Optimizer opt(optim::Sgd{.lr = 0.1}, model.parameters(), scalar::no_scaler());
      auto step = [&](Tensor x, Tensor poison) {
        Tensor loss;
        for (const char name : one.uses) {
          const VariablePtr v = model.parameter(std::string(1, name));
          const bool is_bad = one.infinite.find(name) != std::string::npos;
          const Tensor part = sum(current_emitter().state(v) * (is_bad ? poison : x));
          loss = loss.is_defined() ? loss + part : part;
        }
        return minimize(loss, opt);
      };
      auto compiled = compile(step, {.partial_batches = false});
      const Tensor x = from_floats({1, 2, 3, 4}, {4});
      const Tensor poison = from_floats({inf, 1, 1, 1}, {4});
      const StepResult r = is_compiled ? compiled(x, poison) : step(x, poison);
      const auto names = culprit_names(opt);
      EXPECT_EQ(names.at(static_cast<std::size_t>(r.culprit.item())), one.culprit)
          << one.uses << " " << one.infinite << (is_compiled ? " compiled" : " eager");
    }
}

// In the gradients that backward() leaves, too.
TEST(Culprit, IsNamedInApexLoops) {
  start();
  Apart model;
  Optimizer opt = amp::prepare(model, optim::Sgd{.lr = 0.1}, parse_precision("O0"));
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor poison = from_floats({inf, 1, 1, 1}, {4});
  Emitter& e = eager_session();
  Tensor loss = sum(e.state(model.c) * poison);
  loss = loss + sum(e.state(model.b) * poison);
  loss = loss + sum(e.state(model.a) * poison);
  amp::scale_loss(loss, opt).backward();
  const StepResult r = amp::step(loss, opt);
  EXPECT_EQ(culprit_names(opt).at(static_cast<std::size_t>(r.culprit.item())), "a");
}

scalar::ScalerRule giving_up_after(int steps) {
  scalar::ScalerRule rule = scalar::dynamic_scaler();
  rule.give_up_after = steps;
  return rule;
}

Tensor use_of(const VariablePtr& v) { return current_emitter().state(v); }

// Steps that overflow until E0810 ends the loop; 0 where nothing does.
int steps_until_the_end(const std::function<void(bool overflow)>& step) {
  const auto is_stopped = [&](bool overflow) {
    try {
      step(overflow);
    } catch (const DivergedError& e) {
      EXPECT_EQ(e.code(), "E0810");
      EXPECT_NE(std::string(e.what()).find("the gradient of b"), std::string::npos) << e.what();
      return true;
    }
    return false;
  };
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(is_stopped(true));
  EXPECT_FALSE(is_stopped(false));  // a clean step starts the count anew
  for (int i = 1; i <= 20; ++i)
    if (is_stopped(true)) return i;
  return 0;
}

TEST(GiveUp, EndsEveryLoopAtTheSameStep) {
  for (const char* loop : {"eager", "compiled", "loss only", "apex", "torch", "mindspore"}) {
    start();
    Apart model;
    Optimizer opt(optim::Adam{.lr = 0.1}, model.parameters(), giving_up_after(7));
    const std::string kind = loop;
    const auto loss_of = [&](const Tensor& poison) {
      const Tensor others = sum(use_of(model.c)) + sum(use_of(model.a));
      return others + sum(use_of(model.b) * poison);
    };
    auto step = [&](Tensor poison) { return minimize(loss_of(poison), opt); };
    auto compiled = compile(step, {.partial_batches = false});
    auto loss_only = compile([&](Tensor poison) { return step(poison).loss_tensor; },
                             {.partial_batches = false});
    amp::GradScaler scaler(opt);
    const int steps = steps_until_the_end([&](bool overflow) {
      const float value = overflow ? std::numeric_limits<float>::infinity() : 1.0f;
      const Tensor poison = from_floats({value, 1, 1, 1}, {4});
      if (kind == "eager") step(poison);
      if (kind == "compiled") compiled(poison);
      if (kind == "loss only") loss_only(poison);
      if (kind == "apex") {
        const Tensor loss = loss_of(poison);
        amp::scale_loss(loss, opt).backward();
        amp::step(loss, opt);
      }
      if (kind == "torch") {
        const Tensor loss = loss_of(poison);
        scaler.scale(loss).backward();
        scaler.step(loss);
        scaler.update();
      }
      if (kind == "mindspore") {
        const auto [loss, gradients] = value_and_grad(loss_of, opt)(poison);
        apply_gradients(loss, gradients, opt);
      }
    });
    EXPECT_EQ(steps, 7) << loop;
  }
}

}  // namespace
}  // namespace aloft::e2e
