// Looking on changes nothing: programs with taps on everything that can be tapped run the kernels
// that they run without, in the same order, to the same bits, and beside them what computes once
// more what a fusion takes in; what a tap shows is what the program without fusions computes there,
// what eager code computes, and what a returned value would be.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "e2e/tapped_steps.h"
#include "nn/linear.h"
#include "numbers.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "refusal.h"

namespace aloft::e2e {
namespace {

const Strings kEverything = {"*", "backward:*", "update:*"};

using Steps = TappedSteps<std::string>;

Steps steps_of(const char* precision, int threads, const Strings& taps, const Strings& skip = {}) {
  return tapped_steps(precision, threads, taps, bits_of, skip);
}

// What lies in a variable's memory is copied where it is tapped, because it changes later.
Strings take_copies(Strings& watched, const Strings& plain) {
  Strings copies;
  std::erase_if(watched, [&](const std::string& i) {
    const bool is_copy = i.starts_with("cpu.identity for ") &&
                         std::find(plain.begin(), plain.end(), i) == plain.end();
    if (is_copy) copies.push_back(i);
    return is_copy;
  });
  return copies;
}

class Taps : public testing::TestWithParam<const char*> {};

TEST_P(Taps, ChangeNeitherKernelsNorBits) {
  const Steps plain = steps_of(GetParam(), 2, {});
  EXPECT_TRUE(plain.taps[0].empty());
  Steps watched = steps_of(GetParam(), 2, kEverything);
  EXPECT_GT(watched.taps[0].size(), 80u);
  EXPECT_GT(take_copies(watched.instructions, plain.instructions).size(), 28u);
  EXPECT_EQ(take_computed_again(watched.instructions), 5u);  // of two norms a block, and the rows
  EXPECT_EQ(watched.instructions, plain.instructions);
  EXPECT_EQ(watched.results, plain.results);
  EXPECT_EQ(watched.state, plain.state);
}

TEST_P(Taps, ShowWhatUnfusedOpsCompute) {
  const Steps fused = steps_of(GetParam(), 2, kEverything);
  const Steps apart = steps_of(GetParam(), 2, kEverything, {"fuse-elementwise", "fuse-norm"});
  EXPECT_NE(fused.instructions, apart.instructions);
  EXPECT_EQ(fused.results, apart.results);
  for (std::size_t s = 0; s < fused.taps.size(); ++s) {
    // Everything but the logits, which no kernel writes.
    for (const auto& [name, bits] : apart.taps[s])
      EXPECT_NE(fused.taps[s].contains(name), fused.refused.contains(name)) << name;
    for (const auto& [name, bits] : fused.taps[s]) {
      ASSERT_TRUE(apart.taps[s].contains(name)) << name;
      EXPECT_EQ(apart.taps[s].at(name), bits) << name << " of step " << s;
    }
  }
  for (const std::string& name : fused.refused) {
    EXPECT_FALSE(fused.taps[0].contains(name)) << name;
    EXPECT_TRUE(name.starts_with("head/")) << name;
  }
}

TEST_P(Taps, AreTheSameOnAnyNumberOfThreads) {
  const Steps two = steps_of(GetParam(), 2, kEverything);
  for (int threads : {1, 4}) {
    const Steps other = steps_of(GetParam(), threads, kEverything);
    EXPECT_EQ(other.taps, two.taps) << threads;
    EXPECT_EQ(other.state, two.state) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Taps, testing::Values("O0", "O1:bf16", "O2:bf16", "O2:fp16"));

// --- one function, its inner values returned and tapped

class TapsOfAFunction : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    omp_set_num_threads(2);
    eager().clear_tape();
    manual_seed(1);
  }

  static Strings names_of(const std::vector<Tap>& taps) {
    Strings names;
    for (const Tap& t : taps) names.push_back(t.name);
    return names;
  }
};

TEST_F(TapsOfAFunction, AreWhatReturnedValuesAre) {
  const auto f = [](Tensor x, Tensor y) {
    const Tensor product = x * y, squashed = silu(product), shifted = squashed + 1.0;
    return std::vector<Tensor>{exp(shifted), product, squashed, shifted};
  };
  const auto only = [&](Tensor x, Tensor y) { return f(x, y)[0]; };
  auto all = compile(f);
  auto tapped = compile(only, {.taps = {"op:mul", "/silu#0", "/a??"}});
  for (int rows : {8, 5, 8, 2}) {
    SCOPED_TRACE(rows);
    const Tensor x = numbers({rows, 33}, rows), y = numbers({rows, 33}, 40 + rows);
    const std::vector<Tensor> returned = all(x, y), eagerly = f(x, y);
    EXPECT_EQ(bits_of(tapped(x, y)), bits_of(returned[0]));
    const Strings names = {"/mul#0", "/silu#0", "/add#0"};
    ASSERT_EQ(names_of(tapped.taps()), names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(bits_of(tapped.tap(names[i])), bits_of(returned[i + 1])) << names[i];
      EXPECT_EQ(bits_of(tapped.tap(names[i])), bits_of(eagerly[i + 1])) << names[i];
    }
  }
  int loops = 0;
  for (const Instruction& i : tapped.programs().plan().programs.at(0).instructions)
    loops += i.call.op == Name("fused");
  EXPECT_EQ(loops, 1);
  EXPECT_EQ(tapped.taps()[0].type.str(), "f32[B<=8,33]");
}

TEST_F(TapsOfAFunction, StayWhatTheyWere) {
  auto f = compile([](Tensor x) { return exp(neg(x)); }, {.taps = {"op:neg"}});
  f(numbers({4, 3}));
  const Tensor first = f.tap("/neg#0");
  const std::string before = bits_of(first);
  f(numbers({4, 3}, 9));
  EXPECT_EQ(bits_of(first), before);
  EXPECT_NE(bits_of(f.tap("/neg#0")), before);
}

// A parameter's value from before the step, seen through a reshape, and its gradient: the update is
// still written in place.
TEST_F(TapsOfAFunction, OfAVariableShowItBeforeTheStep) {
  nn::Module root;
  nn::Linear layer(root, "layer", 6, 4);
  auto [net, opt] = amp::initialize(layer, optim::Sgd{.lr = 0.5}, "O0");
  const auto one = [&, &net = net, &opt = opt](Tensor x) {
    const Tensor flat = reshape(current_emitter().state(layer.weight), {24});
    return minimize(mean(square(net(x))) + sum(square(flat)), opt);
  };
  auto plain = compile(one);
  auto step = compile(one, {.taps = {"op:reshape", "backward:op:matmul"}});
  const Tensor x = numbers({8, 6});
  plain(x);
  const std::vector<double> before = current_emitter().state(layer.weight).to_vector();
  step(x);
  EXPECT_EQ(step.tap("/reshape#0").to_vector(), before);
  EXPECT_NE(current_emitter().state(layer.weight).to_vector(), before);
  const Strings kernels = instructions_of(plain.programs());
  Strings watched = instructions_of(step.programs());
  const Strings copies = take_copies(watched, kernels);
  EXPECT_EQ(watched, kernels);
  EXPECT_EQ(copies, Strings{"cpu.identity for /identity#0"});
}

// Whoever writes the variable next: a call without taps, an eager step.
TEST_F(TapsOfAFunction, OfAnUpdateStayWhenTheVariableGoesOn) {
  nn::Module root;
  nn::Linear layer(root, "layer", 6, 4);
  auto [net, opt] = amp::initialize(layer, optim::Sgd{.lr = 0.5}, "O0");
  const auto one = [&, &net = net, &opt = opt](Tensor x) {
    return minimize(mean(square(net(x))), opt);
  };
  auto plain = compile(one);
  auto step = compile(one, {.taps = {"update:*"}});
  const Tensor x = numbers({8, 6});
  step(x);
  std::set<std::string> weights;
  for (const Tap& t : step.taps()) weights.insert(bits_of(step.tap(t.name)));
  EXPECT_TRUE(weights.contains(bits_of(current_emitter().state(layer.weight))));
  const auto seen = [&] {
    std::set<std::string> all;
    for (const Tap& t : step.taps()) all.insert(bits_of(step.tap(t.name)));
    return all;
  };
  plain(x);
  EXPECT_EQ(seen(), weights);
  one(x);
  EXPECT_EQ(seen(), weights);
  EXPECT_FALSE(weights.contains(bits_of(current_emitter().state(layer.weight))));
}

TEST_F(TapsOfAFunction, HaveNoGradient) {
  nn::Module root;
  nn::Linear layer(root, "layer", 3, 2);
  auto f = compile([&](Tensor x) { return exp(neg(layer(x))); }, {.taps = {"op:neg"}});
  f(numbers({4, 3}));
  const Tensor t = f.tap("/neg#0");
  EXPECT_EQ(code_of([&] { sum(t).backward(); }), "E0321");
}

// --- programs that the caller runs himself

TEST_F(TapsOfAFunction, AreOutputsOfPrograms) {
  Programs programs(2);
  const Dim batch = Dim::symbolic("B", 4);
  const auto f = [](const std::vector<Tensor>& in) {
    return std::vector<std::pair<std::string, Tensor>>{{"y", exp(neg(in[0]))}};
  };
  programs.add("plain", {{"x", {DType::F32, {batch, 3}}}}, f);
  programs.tap("op:neg");
  programs.add("tapped", {{"x", {DType::F32, {batch, 3}}}}, f);
  EXPECT_EQ(code_of([&] { programs.taps("none"); }), "E0315");
  EXPECT_TRUE(programs.taps("plain").empty());
  programs.finish();
  std::vector<float> x(12);
  for (int i = 0; i < 12; ++i) x[i] = static_cast<float>(i);
  programs.input<float>("tapped", "x").set(x);
  const std::int64_t rows = 2;
  programs.run(programs.find("tapped"), {&rows, 1});
  const auto seen = programs.output<float>("tapped", "/neg#0").read();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(seen[i], -static_cast<float>(i));
  EXPECT_EQ(code_of([&] { programs.output<float>("plain", "/neg#0"); }), "E0315");
}

// --- what cannot be had

TEST_F(TapsOfAFunction, OfWhatIsNeverWholeAreRefusedWithTheNearest) {
  TinyGpt model;
  const Batch b = sentences(0, 3);
  const auto loss = [&](Tensor x, Tensor label) { return cross_entropy(model(x), label); };
  const auto ask = [&](const std::string& pattern) {
    return refusal([&] { compile(loss, {.taps = {pattern}})(b.x, b.label); });
  };
  // Of logits, which a pattern for everything does not name.
  auto all = compile(loss, {.name = "loss", .taps = {"*"}});
  all(b.x, b.label);
  const auto& refused = all.programs().refused_taps("loss");
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].name, "head/linear#0");
  expect_words(refused[0].why,
               {"linear_cross_entropy#0", "/cross_entropy#0", "a tap of this name"});
  expect_words(ask("hed/linear#0"), {"E0327", "try   head/linear#0"});
  // Where nothing is computed for a look, not even by their name: nothing else is meant.
  const std::string logits = refusal([&] {
    compile(loss, {.passes = {.skip = {"take-statistics"}}, .taps = {"head/linear#0"}})(b.x,
                                                                                        b.label);
  });
  expect_words(logits, {"E0326", "linear_cross_entropy#0", "need", "ln_f/", "/cross_entropy#0"});
  // What it names can be had.
  EXPECT_EQ(ask("/cross_entropy#0"), "");
  EXPECT_EQ(ask("ln_f"), "");
  // Scores and probabilities are inside a kernel from the start.
  expect_words(ask("op:softmax"),
               {"E0326", "saw   a value inside h.0.attn/attention_qkv#0, which never has all",
                "need", "h.0.attn.c_attn/linear#0, h.0.attn/attention_qkv#0"});
  expect_words(ask("h.1.attn/*scores*"), {"E0326", "h.1.attn/attention_qkv#0"});
}

// They are computed once more, to the bits that eager code has.
TEST_F(TapsOfAFunction, OfLogitsAreThereForWhoNamesThem) {
  for (const char* precision : {"O0", "O2:bf16", "O2:fp16"}) {
    manual_seed(3);
    TinyGpt model;
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3}, precision);
    const auto step = [&, &net = net, &opt = opt](Tensor x, Tensor label) {
      return minimize(cross_entropy(net(x), label), opt);
    };
    model.eval();
    const Batch b = sentences(0, 3);
    const std::string logits = bits_of(net(b.x));
    auto compiled = compile(step, {.name = "step", .taps = {"op:linear"}});
    compiled(b.x, b.label);
    EXPECT_EQ(compiled.taps().size(), 9u);  // four a layer, and the head
    EXPECT_TRUE(compiled.programs().refused_taps("step").empty());
    EXPECT_EQ(bits_of(compiled.tap("head/linear#0")), logits) << precision;
  }
}

TEST_F(TapsOfAFunction, OfADroppedValueAreRefused) {
  const auto f = [](Tensor x) {
    exp(x);
    return neg(x);
  };
  const Tensor x = numbers({4, 3});
  expect_words(refusal([&] { compile(f, {.taps = {"op:exp"}})(x); }),
               {"E0326", "/exp#0", "not computed", "/neg#0"});
}

TEST_F(TapsOfAFunction, OfNothingAreRefusedWithWhatIsNear) {
  TinyGpt model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3}, "O0");
  const Batch b = sentences(0, 3);
  const auto ask = [&, &net = net, &opt = opt](const std::string& pattern) {
    const auto one = [&](Tensor x, Tensor label) {
      return minimize(cross_entropy(net(x), label), opt);
    };
    return refusal([&] { compile(one, {.taps = {pattern}})(b.x, b.label); });
  };
  expect_words(ask("op:gelu_tan"), {"E0327", "op:gelu_tan", "try   op:gelu_tanh"});
  expect_words(ask("h.0.mpl"), {"E0327", "h.0.mlp"});
  expect_words(ask("h.0.mlp/gelu_tanh#3"), {"E0327", "h.0.mlp/gelu_tanh#0"});
  expect_words(ask("op:attention_qkv_grad"), {"E0327", "try", "backward:op:attention_qkv_grad"});
  EXPECT_EQ(ask(""), "");  // the residual's first addition belongs to no module
  EXPECT_EQ(ask("backward:op:attention_qkv_grad"), "");
}

TEST_F(TapsOfAFunction, ThatWereNotAskedForAreRefused) {
  auto f = compile([](Tensor x) { return exp(neg(x)); }, {.taps = {"op:neg"}});
  EXPECT_EQ(code_of([&] { f.tap("/neg#0"); }), "E0315");
  EXPECT_EQ(code_of([&] { f.taps(); }), "E0315");
  f(numbers({4, 3}));
  expect_words(refusal([&] { f.tap("/exp#0"); }), {"E0327", "/neg#0"});
  EXPECT_NE(refusal([&] { f(Tensor()); }), "");
  EXPECT_EQ(bits_of(f.tap("/neg#0")), bits_of(neg(numbers({4, 3}))));
}

}  // namespace
}  // namespace aloft::e2e
