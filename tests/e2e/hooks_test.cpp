// Hooks on modules and gradients: what they see, what they replace, in which order, in both modes.
#include "frontend/hooks.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "models/gpt2.h"
#include "models/lenet.h"
#include "models/llama.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "numbers.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/constant.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "refusal.h"

namespace aloft::e2e {
namespace {

struct Net : nn::Layer {
  nn::Linear up{*this, "up", 6, 16}, down{*this, "down", 16, 3};
  nn::Dropout drop{*this, "drop", 0.25};
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) { return down(drop(gelu(up(t)))); });
  }
};

void start() {
  use_cpu();
  omp_set_num_threads(1);
  eager().clear_tape();
  manual_seed(2);
}

class Hooks : public testing::Test {
 protected:
  void SetUp() override { start(); }
};

Tensor gradient_of(const Tensor& loss, const Tensor& of) {
  const Tensor wrt[] = {of};
  return current_emitter().gradients(loss, full(Shape{}, 1.0, DType::F32), wrt, current_where())[0];
}

// --- gradients of tensors

TEST_F(Hooks, OfATensorSeeItsWholeGradientOnce) {
  const Tensor x = numbers({4, 3});
  std::vector<std::vector<double>> seen;
  const Hook h = on_gradient(x, [&](const Tensor& g) { seen.push_back(g.to_vector()); });
  const Tensor g = gradient_of(sum(x * 2.0) + sum(x * 3.0), x);
  EXPECT_EQ(g.to_vector(), std::vector<double>(12, 5));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0], std::vector<double>(12, 5));
  EXPECT_EQ(h.runs(), 1u);
}

TEST_F(Hooks, OfATensorReplaceWhatGoesOn) {
  const Tensor x = numbers({4, 3});
  const Tensor y = x * 2.0;
  Hook first = on_gradient(y, [](const Tensor& g) { return g * 10.0; });
  Hook second = on_gradient(y, [](const Tensor& g) { return g + 1.0; });
  const Tensor loss = sum(y);
  EXPECT_EQ(gradient_of(loss, x).to_vector(), std::vector<double>(12, 22));  // in order: (10 + 1) 2
  first.remove();
  EXPECT_FALSE(first.is_there());
  first.remove();
  EXPECT_EQ(gradient_of(loss, x).to_vector(), std::vector<double>(12, 4));
  second.remove();
  EXPECT_EQ(gradient_of(loss, x).to_vector(), std::vector<double>(12, 2));
}

TEST_F(Hooks, RunFromTheLastOpToTheFirst) {
  const Tensor x = numbers({4, 3});
  std::string order;
  const auto named = [&](const Tensor& t, char name) {
    on_gradient(t, [&order, name](const Tensor&) { order += name; });
    return t;
  };
  const Tensor a = named(x * 2.0, 'a'), b = named(a + 1.0, 'b'), c = named(b * a, 'c');
  named(x, 'x');
  gradient_of(sum(c), x);
  EXPECT_EQ(order, "cbax");
}

// A hook may compute whatever it likes, with tensors, parameters and compiled functions.
TEST_F(Hooks, MayComputeAnything) {
  Net net;
  net.eval();
  auto doubled = compile([](const Tensor& t) { return t * 2.0; });
  const Tensor x = spread(1, {4, 6}), other = spread(2, {4, 6});
  const Tensor y = x * 1.0;
  on_gradient(y, [&](const Tensor& g) {
    for (int i = 0; i < 3000; ++i) from_floats({1}, {1}) + 1.0;  // the tape grows meanwhile
    const NoGrad no_grad;
    return g + doubled(other) + mean(net(other)) + from_floats(std::vector<float>(24, 1), {4, 6});
  });
  const auto seen = gradient_of(sum(square(y)), x).to_vector();
  const auto want =
      (y * 2.0 + other * 2.0 + mean(net(other)) + from_floats(std::vector<float>(24, 1), {4, 6}))
          .to_vector();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(seen[i], want[i], 1e-5);
}

// --- both modes

using Register = std::function<std::vector<Hook>(Net&)>;

struct Course {
  std::map<std::string, std::string> state;
  std::vector<double> losses;
  std::vector<std::uint64_t> hooks;
  bool operator==(const Course& other) const {
    return state == other.state && losses == other.losses;
  }
};

Course train(bool is_compiled, const char* precision, const Register& hooks, int steps = 4) {
  start();
  Net model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, precision);
  const std::vector<Hook> all = hooks(model);
  auto step = [&net = net, &opt = opt](const Tensor& x, const Tensor& y) {
    return minimize(mse_loss(cast(net(x), DType::F32), y), opt);
  };
  auto compiled = compile(step);
  Course run;
  for (int i = 0; i < steps; ++i) {
    const Tensor x = spread(i, {8, 6}), y = spread(i + 7, {8, 3});
    run.losses.push_back((is_compiled ? compiled(x, y) : step(x, y)).loss());
  }
  run.state = state_of(model, opt);
  for (const Hook& h : all) run.hooks.push_back(h.runs());
  return run;
}

class HooksInBothModes : public testing::TestWithParam<const char*> {};

TEST_P(HooksInBothModes, ComputeTheSame) {
  const std::pair<const char*, Register> cases[] = {
      {"input",
       [](Net& m) {
         return std::vector{m.down.on_input([](const Tensor& x) { return x * 0.5; })};
       }},
      {"output",
       [](Net& m) {
         return std::vector{m.up.on_output([](const Tensor& x, const Tensor& y) {
           return y + mean(cast(x, DType::F32)) * 0.0 + tanh(y);
         })};
       }},
      {"gradient of an output",
       [](Net& m) {
         return std::vector{
             m.up.on_output_gradient([](const Tensor& g) { return g * 3.0; }),
             m.drop.on_output_gradient([](const Tensor& g) { return clamp(g, -0.01, 0.01); })};
       }},
      {"gradient of a parameter",
       [](Net& m) {
         return std::vector{on_gradient(m.up.weight, [](const Tensor& g) { return g * 0.5; }),
                            on_gradient(m.down.bias, [](const Tensor& g) { return g * 0.0; })};
       }},
      {"of the whole", [](Net& m) {
         return std::vector{m.on_input([](const Tensor& x) { return x + 1.0; }),
                            m.on_output([](const Tensor&, const Tensor& y) { return y * y; }),
                            m.on_output_gradient([](const Tensor& g) { return g * 2.0; })};
       }}};
  const Course plain = train(true, GetParam(), [](Net&) { return std::vector<Hook>(); });
  for (const auto& [name, hooks] : cases) {
    SCOPED_TRACE(name);
    const Course eagerly = train(false, GetParam(), hooks),
                 compiled = train(true, GetParam(), hooks);
    EXPECT_EQ(eagerly.losses, compiled.losses);
    EXPECT_TRUE(eagerly == compiled);
    EXPECT_FALSE(eagerly == plain);
    for (const std::uint64_t runs : eagerly.hooks) EXPECT_EQ(runs, 4u);
    for (const std::uint64_t runs : compiled.hooks) EXPECT_GE(runs, 1u);
  }
}

// One that looks changes no bit.
TEST_P(HooksInBothModes, ThatOnlyLookChangeNothing) {
  const auto looking = [](Net& m) {
    const auto see = [](const Tensor&) {};
    return std::vector{m.up.on_input(see), m.up.on_output([](const Tensor&, const Tensor&) {}),
                       m.up.on_output_gradient(see), on_gradient(m.up.weight, see)};
  };
  const auto none = [](Net&) { return std::vector<Hook>(); };
  for (const bool is_compiled : {false, true})
    EXPECT_TRUE(train(is_compiled, GetParam(), looking) == train(is_compiled, GetParam(), none))
        << is_compiled;
}

INSTANTIATE_TEST_SUITE_P(All, HooksInBothModes,
                         testing::Values("O0", "O1:bf16", "O2:bf16", "O2:fp16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

TEST_F(Hooks, OnATensorOfATracedFunctionArePartOfTheProgram) {
  int traced = 0;
  const auto gradients = [&](const Tensor& x) {
    const Tensor y = x * 2.0;
    on_gradient(y, [&](const Tensor& g) {
      ++traced;
      return g * 10.0;
    });
    return gradient_of(sum(square(y)), x);
  };
  auto compiled = compile(gradients);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = spread(i, {4, 6});
    EXPECT_EQ(compiled(x).to_vector(), (x * 80.0).to_vector());
  }
  EXPECT_EQ(traced, 1);
}

// What comes and goes between the calls has the function compiled once more; a set that was there
// before finds its program again.
TEST_F(Hooks, ThatComeAndGoAreSeenByCompiledFunctions) {
  Net model;
  model.eval();
  int traces = 0;
  auto compiled = compile([&](const Tensor& x) {
    ++traces;
    return model(x);
  });
  const Tensor x = spread(1, {4, 6});
  const auto plain = compiled(x).to_vector();
  Hook h = model.down.on_output([](const Tensor&, const Tensor& y) { return y * 2.0; });
  EXPECT_EQ(compiled(x).to_vector(), (model(x)).to_vector());
  EXPECT_NE(compiled(x).to_vector(), plain);
  EXPECT_EQ(traces, 2);
  h.remove();
  EXPECT_EQ(compiled(x).to_vector(), plain);
  EXPECT_EQ(traces, 2);

  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.1}, "O0");
  auto step = compile([&net = net, &opt = opt](const Tensor& t) {
    return minimize(mean(square(net(t))), opt).grad_norm;
  });
  const double norm = step(x).item();
  EXPECT_GT(norm, 0);
  std::vector<Hook> all;
  for (const VariablePtr& p : model.parameters())
    all.push_back(on_gradient(p, [](const Tensor& g) { return g * 0.0; }));
  EXPECT_EQ(step(x).item(), 0);
  for (Hook& one : all) one.remove();
  EXPECT_GT(step(x).item(), 0);
  EXPECT_EQ(step.programs().plan().programs.size(), 2u);
}

TEST_F(Hooks, OfAParameterSeeWhatBackwardLeaves) {
  Net model;
  model.eval();
  const Tensor x = spread(1, {4, 6});
  sum(model(x)).backward();
  const auto plain = grad_of(model.up.weight).to_vector();
  model.zero_grad();
  Hook h = on_gradient(model.up.weight, [](const Tensor& g) { return g * 2.0; });
  sum(model(x)).backward();
  sum(model(x)).backward();
  const auto twice = grad_of(model.up.weight).to_vector();
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(twice[i], 4 * plain[i]);
}

// Of one that is given through by evaluation, which is its neighbour's too.
TEST_F(Hooks, OfAnOutputThatIsTheInputSeeItsOwnGradient) {
  nn::Module root;
  nn::Dropout drop(root, "drop", 0.5);
  drop.eval();
  std::vector<double> seen;
  drop.on_output_gradient([&](const Tensor& g) { seen = g.to_vector(); });
  const Tensor x = numbers({4, 3});
  const Tensor g = gradient_of(sum(drop(x) * 2.0) + sum(x * 3.0), x);
  EXPECT_EQ(seen, std::vector<double>(12, 2));
  EXPECT_EQ(g.to_vector(), std::vector<double>(12, 5));
}

// Gradients of gradients pass hooks that were there before the first.
TEST_F(Hooks, GradientsOfHookedGradients) {
  const auto twice = [](const Tensor& x) {
    const Tensor y = x * x;
    on_gradient(y, [](const Tensor& g) { return g * 3.0; });
    const Tensor first = gradient_of(sum(y * x), x);  // 3 x 2x + x x
    return gradient_of(sum(first), x);
  };
  const Tensor x = numbers({4, 3});
  EXPECT_EQ(compile(twice)(x).to_vector(), twice(x).to_vector());
  const auto late = [](const Tensor& t) {
    const Tensor y = t * t, first = gradient_of(sum(y * t), t);
    on_gradient(y, [](const Tensor& g) { return g * 3.0; });
    return gradient_of(sum(first), t);
  };
  expect_words(refusal([&] { compile(late)(x); }), {"E0334", "before the first gradient"});
}

// Every layer and model of the library runs them.
TEST_F(Hooks, RunInModelsOfTheLibrary) {
  const auto expect_all_run = [](nn::Module& model, const std::function<void()>& call) {
    std::vector<std::pair<std::string, Hook>> all;
    for (nn::Module* m : model.modules()) {
      all.emplace_back(m->path() + " in", m->on_input([](const Tensor&) {}));
      all.emplace_back(m->path() + " out", m->on_output([](const Tensor&, const Tensor&) {}));
    }
    call();
    for (const auto& [of, hook] : all) EXPECT_GE(hook.runs(), 1u) << of;
  };
  const Tensor tokens = from_ints({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});
  models::Gpt2 gpt({.layers = 2, .heads = 2, .dim = 8, .vocab = 11, .context = 8});
  expect_all_run(gpt, [&] { gpt(tokens); });
  models::Llama llama({.layers = 1, .heads = 2, .kv_heads = 1, .dim = 8, .vocab = 11});
  expect_all_run(llama, [&] { llama(tokens); });
  models::LeNet lenet({.channels = 1, .height = 8, .width = 8, .classes = 3});
  expect_all_run(lenet, [&] { lenet(numbers({2, 1, 8, 8})); });
  models::ResNet resnet({.channels = 1, .classes = 3, .width = 4, .blocks = {1, 1}});
  expect_all_run(resnet, [&] { resnet(numbers({2, 1, 8, 8})); });
  models::Mlp mlp({6, 4, 2});
  expect_all_run(mlp, [&] { mlp(numbers({2, 6})); });

  EXPECT_EQ(gpt.find("h.1.attn")->path(), "h.1.attn");
  EXPECT_EQ(gpt.find("h.2"), nullptr);
}

// --- refusals

TEST_F(Hooks, WhatTheyMayNotReturnIsNamed) {
  Net model;
  const Tensor x = spread(1, {4, 6});
  Hook h = model.up.on_output([](const Tensor&, const Tensor& y) { return reshape(y, {16, 4}); });
  expect_words(refusal([&] { model(x); }),
               {"E0334", "the output of 'up'", "f32[16,4]", "f32[4,16]"});
  expect_words(refusal([&] { compile([&](const Tensor& t) { return model(t); })(x); }),
               {"E0334", "the output of 'up'"});
  h.remove();
  h = model.down.on_input([](const Tensor& t) { return cast(t, DType::BF16); });
  expect_words(refusal([&] { model(x); }), {"E0334", "the input of 'down'", "bf16[4,16]"});
  h.remove();
  h = model.down.on_input([&](const Tensor&) { return spread(1, {4, 16}); });
  model(x);  // eagerly a tensor of the program's own will do
  expect_words(refusal([&] { compile([&](const Tensor& t) { return model(t); })(x); }),
               {"E0334", "the input of 'down'", "another program"});
  h.remove();
  h = on_gradient(model.up.weight, [](const Tensor& g) { return sum(g); });
  expect_words(refusal([&] { sum(model(x)).backward(); }),
               {"E0334", "the gradient of 'up.weight'", "f32[]", "f32[16,6]"});
  h.remove();
  const Tensor y = x * 2.0;
  on_gradient(y, [](const Tensor& g) { return sum(g); });
  expect_words(refusal([&] { gradient_of(sum(y), x); }), {"E0334", "the gradient of a f32[4,6]"});
}

TEST_F(Hooks, ThatCannotBeAreRefused) {
  Net model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.1}, "O0");
  const Tensor x = spread(1, {4, 6});
  const auto see = [](const Tensor&) {};
  EXPECT_EQ(code_of([&] { on_gradient(Tensor(), see); }), "E0302");
  EXPECT_EQ(code_of([&] { on_gradient(from_ints({1}, {1}), see); }), "E0311");
  EXPECT_EQ(code_of([&] { on_gradient(model.parameter("none"), see); }), "E0325");
  EXPECT_EQ(code_of([&] { on_gradient(x, std::function<void(const Tensor&)>()); }), "E0302");
  EXPECT_EQ(code_of([&] { model.on_input(std::function<void(const Tensor&)>()); }), "E0302");
  expect_words(refusal([&] {
                 compile([&](const Tensor& t) {
                   model.up.on_input(see);
                   return model(t);
                 })(x);
               }),
               {"E0334", "'up'", "from outside of compiled functions"});
  const Tensor y = x * 2.0;
  on_gradient(y, [&, &opt = opt](const Tensor&) { minimize(mean(model(x)), opt); });
  expect_words(refusal([&] { gradient_of(sum(y), x); }), {"E0334", "minimize()"});
  const Tensor z = x * 2.0;
  on_gradient(z, [&](const Tensor&) { mean(model(x)).backward(); });
  expect_words(refusal([&] { gradient_of(sum(z), x); }), {"E0334", "backward()"});
  minimize(mean(model(x)), opt);  // and everything goes on
}

TEST_F(Hooks, GoWithWhatTheyAreOn) {
  Hook h, p;
  EXPECT_FALSE(h.is_there());
  h.remove();
  {
    Net model;
    h = model.up.on_input([](const Tensor&) {});
    p = on_gradient(model.up.weight, [](const Tensor&) {});
    EXPECT_TRUE(h.is_there());
  }
  EXPECT_FALSE(h.is_there());
  h.remove();
  p.remove();
  EXPECT_EQ(h.runs(), 0u);
}

}  // namespace
}  // namespace aloft::e2e
