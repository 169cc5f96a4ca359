// Arguments and results of compiled functions that hold tensors: structs, containers, one in
// another; numbers beside them.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "models/gpt2.h"
#include "models/mlp.h"
#include "nn/linear.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "optim/adamw.h"
#include "refusal.h"

namespace aloft::e2e {

struct Example {
  Tensor x;
  std::optional<Tensor> mask;
  static constexpr auto parts() {
    return std::tuple{part("x", &Example::x), part("mask", &Example::mask)};
  }
};

struct Scores {  // not the program's own: its parts are said outside
  std::map<std::string, Tensor> named;
  std::array<Tensor, 2> both;
  std::vector<Example> again;
  std::string label = "as it was traced";
};

}  // namespace aloft::e2e

template <>
struct aloft::PartsOf<aloft::e2e::Scores> {
  static constexpr auto parts() {
    using S = aloft::e2e::Scores;
    return std::tuple{part("named", &S::named), part("both", &S::both), part("again", &S::again)};
  }
};

namespace aloft::e2e {
namespace {

class NestedCalls : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    omp_set_num_threads(1);
    eager().clear_tape();
    manual_seed(1);
  }
};

Scores score(const std::vector<Example>& examples, const std::map<int, Tensor>& weights,
             const std::pair<Tensor, std::tuple<Tensor>>& more) {
  Scores s;
  Tensor total = more.first + std::get<0>(more.second);
  for (const Example& e : examples) {
    total = total + (e.mask ? e.x * *e.mask : e.x * 0.5);
    s.again.push_back({total, e.mask});
  }
  for (const auto& [key, w] : weights) s.named["w" + std::to_string(key)] = total * w;
  s.both = {total, mean(total)};
  return s;
}

std::vector<std::vector<double>> values_of(const Scores& s) {
  std::vector<std::vector<double>> all;
  for (const auto& [name, t] : s.named) all.push_back(t.to_vector());
  for (const Tensor& t : s.both) all.push_back(t.to_vector());
  for (const Example& e : s.again) {
    all.push_back(e.x.to_vector());
    all.push_back(e.mask ? e.mask->to_vector() : std::vector<double>{-1});
  }
  return all;
}

TEST_F(NestedCalls, AnyNestingOfArgumentsAndResults) {
  auto compiled = compile(score);
  int programs = 0;
  for (const std::int64_t rows : {8, 5, 8})
    for (const int count : {1, 3}) {
      std::vector<Example> examples;
      for (int i = 0; i < count; ++i) {
        examples.push_back({numbers({rows, 3}, static_cast<float>(i)), {}});
        if (i % 2 == 0) examples.back().mask = numbers({rows, 3}, -2);
      }
      const std::map<int, Tensor> weights{{3, numbers({rows, 3})}, {7, numbers({rows, 3}, 4)}};
      const std::pair more{numbers({rows, 3}, 9), std::tuple{numbers({rows, 3}, -9)}};
      const Scores got = compiled(examples, weights, more), want = score(examples, weights, more);
      EXPECT_EQ(values_of(got), values_of(want)) << rows << ", " << count;
      EXPECT_EQ(got.label, want.label);
      programs = static_cast<int>(compiled.programs().plan().programs.size());
    }
  EXPECT_EQ(programs, 2);  // for one example and for three; fewer rows are the same
}

// A length, a key and what is there are part of the program, each another one.
TEST_F(NestedCalls, ContainersOfOtherShapesAreCompiledFor) {
  int traces = 0;
  const auto weighted = [&](const std::vector<std::vector<Tensor>>& lists,
                            const std::map<std::string, std::optional<Tensor>>& named) {
    ++traces;
    Tensor t = lists.at(0).at(0);
    for (std::size_t i = 0; i < lists.size(); ++i)
      for (const Tensor& x : lists[i]) t = t + x * static_cast<double>(i + 1);
    for (const auto& [name, x] : named)
      if (x) t = t + *x * static_cast<double>(name.size());
    return t;
  };
  auto compiled = compile(weighted);
  const Tensor a = numbers({4, 2}), b = numbers({4, 2}, 7);
  using Lists = std::vector<std::vector<Tensor>>;
  using Named = std::map<std::string, std::optional<Tensor>>;
  const std::vector<std::pair<Lists, Named>> calls = {
      {{{a, b}}, {}},         {{{a}, {b}}, {}},     {{{a}}, {{"p", b}}},
      {{{a}}, {{"long", b}}}, {{{a}}, {{"p", {}}}}, {{{a}, {}}, {{"p", b}}},
  };
  for (int round = 0; round < 2; ++round)
    for (const auto& [lists, named] : calls) {
      const auto got = compiled(lists, named).to_vector();
      const int before = traces;
      EXPECT_EQ(got, weighted(lists, named).to_vector());
      traces = before;
    }
  EXPECT_EQ(traces, static_cast<int>(calls.size()));
}

enum class Kind { Plain, Squared };

TEST_F(NestedCalls, NumbersAndTextArePartOfTheProgram) {
  int traces = 0;
  auto f = compile([&](Tensor x, double by, Kind kind, const std::string& how, bool negative) {
    ++traces;
    Tensor y = kind == Kind::Squared ? x * x : x;
    if (how == "mean") y = mean(y, {1});
    return y * (negative ? -by : by);
  });
  const Tensor x = numbers({4, 3});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(f(x, 2.0, Kind::Plain, "all", false).to_vector(), (x * 2.0).to_vector());
    EXPECT_EQ(f(x, 3.0, Kind::Plain, "all", false).to_vector(), (x * 3.0).to_vector());
    EXPECT_EQ(f(x, 3.0, Kind::Squared, "all", false).to_vector(), (x * x * 3.0).to_vector());
    EXPECT_EQ(f(x, 3.0, Kind::Squared, std::string("mean"), true).to_vector(),
              (mean(x * x, {1}) * -3.0).to_vector());
  }
  EXPECT_EQ(traces, 4);
}

TEST_F(NestedCalls, AFunctionMayGiveNothing) {
  nn::Module root;
  nn::Linear layer(root, "layer", 3, 2);
  auto [net, opt] = amp::initialize(layer, optim::AdamW{.lr = 0.1}, "O0");
  auto step = compile([&net = net, &opt = opt](const Tensor& x) { minimize(mean(net(x)), opt); });
  const std::string before = bytes_of(*layer.weight);
  step(numbers({4, 3}));
  EXPECT_NE(bytes_of(*layer.weight), before);
}

TEST_F(NestedCalls, StepResultsLieInOtherResults) {
  nn::Module root;
  nn::Linear one(root, "one", 3, 2), two(root, "two", 3, 2);
  auto [a, of_a] = amp::initialize(one, optim::AdamW{.lr = 0.1}, "O0");
  auto [b, of_b] = amp::initialize(two, optim::AdamW{.lr = 0.1}, "O0");
  auto step = compile([&a = a, &of_a = of_a, &b = b, &of_b = of_b](const Tensor& x) {
    return std::map<std::string, StepResult>{{"a", minimize(mean(a(x)), of_a)},
                                             {"b", minimize(mean(b(x) * b(x)), of_b)}};
  });
  const Tensor x = numbers({4, 3});
  const double loss = mean(a(x)).item();
  const auto results = step(x);
  EXPECT_EQ(results.at("a").loss(), loss);
  EXPECT_FALSE(results.at("b").skipped());
  EXPECT_NE(results.at("b").grad_norm.item(), results.at("a").grad_norm.item());
}

TEST_F(NestedCalls, ErrorsNameTheArgumentAndItsPart) {
  auto compiled =
      compile([](const Tensor& x,
                 const std::vector<Example>& list) { return x + list[0].x + *list[1].mask; },
              {.name = "pick"});
  const Tensor x = numbers({4, 3});
  expect_words(refusal([&] {
                 compiled(x, std::vector<Example>{{x, {}}, {x, Tensor()}});
               }),
               {"E0302", "argument 1, [1].mask", "std::optional<Tensor>"});
  expect_words(refusal([&] {
                 compiled(Tensor(), std::vector<Example>{{x, {}}, {x, x}});
               }),
               {"E0302", "argument 0 of a compiled function"});
  // What f refuses, with what it was given and where.
  expect_words(
      refusal([&] {
        compiled(x, std::vector<Example>{{x, {}}, {x, numbers({4, 2})}});
      }),
      {"E0203", "'pick' for argument 0: f32[4,3]; argument 1: 2 values",
       "argument 1, [0].x: f32[4,3]", "argument 1, [1].mask: f32[4,2]",
       "in 0: computed from argument 0 and argument 1, [0].x", "in 1: argument 1, [1].mask"});
  // Also where no op refuses: a loss, an axis, a length.
  const models::Mlp model({3, 2}, relu);
  Optimizer optimizer(optim::AdamW{}, model.parameters(), scalar::no_scaler());
  const auto scalar_loss = [&](const Tensor&, const std::vector<Example>& list) {
    minimize(model(list[0].x), optimizer);
  };
  expect_words(refusal([&] {
                 compile(scalar_loss)(x, std::vector<Example>{{x, {}}});
               }),
               {"E0803", "from  computed from argument 1, [0].x"});
  const auto axis = [](const Tensor& t) { return t * static_cast<double>(t.dim(2).max()); };
  expect_words(refusal([&] { compile(axis)(x); }), {"E0107", "from  argument 0"});
  const models::Gpt2 gpt({.layers = 1, .heads = 1, .dim = 4, .vocab = 11, .context = 4});
  const auto too_long = [&](const std::vector<Tensor>& t) { return gpt(t[1]); };
  const Tensor ids = cast(full({2, 5}, 1.0), DType::I32);
  expect_words(refusal([&] {
                 compile(too_long)(std::vector{x, ids});
               }),
               {"E0213", "i32[2,5]", "from  argument 0, [1]"});
  const auto joined = [](const Tensor& t) { return flatten(t, 1, 0); };
  expect_words(refusal([&] { compile(joined)(x); }), {"E0107", "from  argument 0"});
  // And of a result.
  auto partly = compile([](const Tensor& t) { return std::vector<Example>{{t, {}}, {{}, {}}}; });
  expect_words(refusal([&] { partly(x); }), {"E0302", "result1.x"});
}

}  // namespace
}  // namespace aloft::e2e
