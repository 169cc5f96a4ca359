// Functions that are compiled again and again: for how many shapes, up to which declared batch, and
// what is said about it.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "nn/linear.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/softmax.h"
#include "optim/sgd.h"
#include "refusal.h"

namespace aloft::e2e {
namespace {

class RetracedCalls : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    omp_set_num_threads(1);
    eager().clear_tape();
    manual_seed(1);
  }
};

struct Sized {
  Tensor x;
  static constexpr auto parts() { return std::tuple{part("x", &Sized::x)}; }
};

TEST_F(RetracedCalls, OtherShapesAreCompiledForAndTheOldestProgramMakesRoom) {
  int traces = 0;
  auto doubled = compile([&](Tensor x) {
    ++traces;
    return x * 2.0;
  });
  for (const std::int64_t rows : {8, 5, 8, 2}) doubled(numbers({rows, 3}));
  EXPECT_EQ(traces, 1);  // fewer rows: the same program
  EXPECT_EQ(doubled(numbers({12, 3})).dim(0), Dim(12));
  doubled(numbers({8, 3}));
  EXPECT_EQ(traces, 2);  // a larger batch's program serves the smaller ones too
  EXPECT_EQ(doubled.programs().plan().programs.size(), 1u);
  for (std::int64_t columns = 4; columns < 19; ++columns)
    EXPECT_EQ(doubled(numbers({2, columns})).to_vector(),
              (numbers({2, columns}) * 2.0).to_vector());
  const auto programs = [&] { return doubled.programs().plan().programs.size(); };
  EXPECT_EQ(programs(), 16u);
  EXPECT_EQ(traces, 17);
  doubled(numbers({12, 3}));  // used again
  // The 17th takes the place of [*,4], which was used longest ago.
  EXPECT_EQ(doubled(numbers({2, 19})).to_vector(), (numbers({2, 19}) * 2.0).to_vector());
  EXPECT_EQ(traces, 18);
  EXPECT_EQ(doubled(numbers({6, 3})).to_vector(), (numbers({6, 3}) * 2.0).to_vector());
  EXPECT_EQ(doubled(numbers({2, 5})).to_vector(), (numbers({2, 5}) * 2.0).to_vector());
  EXPECT_EQ(traces, 18);
  EXPECT_EQ(doubled(numbers({2, 4})).to_vector(), (numbers({2, 4}) * 2.0).to_vector());
  EXPECT_EQ(traces, 19);
  EXPECT_EQ(programs(), 16u);
}

TEST_F(RetracedCalls, AStepForAnyNumberOfShapesTrainsAsEagerly) {
  const auto states = [](bool is_compiled) {
    manual_seed(5);
    nn::Module root;
    nn::Linear layer(root, "layer", 3, 2);
    auto [net, opt] = amp::initialize(layer, optim::Sgd{.lr = 0.01}, "O0");
    const auto step = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
      const Tensor d = mean(net(x), {1}) - y;
      return minimize(mean(d * d), opt);
    };
    auto compiled = compile(step);
    for (int i = 0; i < 40; ++i) {
      const std::int64_t length = 1 + (i * 7) % 20;  // a shorter sequence, a longer one
      const Tensor x = numbers({2, length, 3}), y = numbers({2, 2}, -1);
      is_compiled ? compiled(x, y) : step(x, y);
    }
    return state_of(layer, opt);
  };
  EXPECT_EQ(states(true), states(false));
}

TEST_F(RetracedCalls, ALargestBatchThatIsDeclaredIsTracedForOnce) {
  int traces = 0;
  auto scaled = compile(
      [&](Tensor x) {
        ++traces;
        return softmax(x * 2.0);
      },
      {.most_rows = 32});
  for (const std::int64_t rows : {4, 8, 2, 32, 31}) {
    const Tensor x = numbers({rows, 3});
    EXPECT_EQ(scaled(x).to_vector(), softmax(x * 2.0).to_vector()) << rows;
  }
  EXPECT_EQ(traces, 1);
  const Tensor more = numbers({40, 3});  // more than declared are compiled for as ever
  EXPECT_EQ(scaled(more).to_vector(), softmax(more * 2.0).to_vector());
  EXPECT_EQ(traces, 2);
  expect_words(refusal([] { compile([](Tensor x) { return x; }, {.most_rows = -1}); }),
               {"E0700", "most_rows = -1"});
}

// What serves whole batches alone is compiled for the rows that come.
TEST_F(RetracedCalls, ALargestBatchIsNoneWhereRowsAreReadAsANumber) {
  const auto by_number = [](Tensor x) {
    return sum(x) * (1.0 / static_cast<double>(x.dim(0).max()));
  };
  const auto product = [](Tensor x) { return matmul(x, x); };
  auto number = compile(by_number, {.most_rows = 16});
  auto square = compile(product, {.most_rows = 16});
  for (const std::int64_t rows : {4, 16, 8, 4}) {
    const Tensor x = numbers({rows, 2}), y = numbers({rows, rows});
    EXPECT_EQ(number(x).item(), by_number(x).item()) << rows;
    EXPECT_EQ(square(y).to_vector(), product(y).to_vector()) << rows;
  }
}

// --- what is said

std::string told_by(const std::function<void()>& calls) {
  testing::internal::CaptureStderr();
  calls();
  return testing::internal::GetCapturedStderr();
}

std::size_t count_of(const std::string& word, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

TEST_F(RetracedCalls, TheEighthTraceIsToldOfOnce) {
  auto f = compile([](const Tensor& x, const Sized& e) { return sum(x) + sum(e.x); },
                   {.name = "totals"});
  const auto call = [&](std::int64_t length) { f(numbers({2, 3}), Sized{numbers({3, length})}); };
  const std::string before = told_by([&] {
    for (std::int64_t n = 1; n < 8; ++n) call(n);
    for (std::int64_t n = 1; n < 8; ++n) call(n);
  });
  EXPECT_EQ(before, "");
  const std::string at_eighth = told_by([&] { call(8); });
  expect_words(at_eighth, {"warning: ", "'totals'", "retraced_calls_test.cpp:", "argument 1, .x",
                           "8 types and shapes", "f32[3,8]", "pad it to a few lengths"});
  EXPECT_EQ(count_of("warning", at_eighth), 1u);
  EXPECT_EQ(told_by([&] {
              for (std::int64_t n = 9; n < 30; ++n) call(n);
            }),
            "");
}

TEST_F(RetracedCalls, WhatToDoIsSaid) {
  auto rows = compile([](const Tensor& x) { return x * 2.0; }, {.partial_batches = false});
  expect_words(told_by([&] {
                 for (std::int64_t n = 2; n < 10; ++n) rows(numbers({n, 3}));
               }),
               {"argument 0 has had 8", "CompileOptions::most_rows"});
  auto number = compile([](const Tensor& x, double by) { return x * by; });
  expect_words(told_by([&] {
                 for (int n = 0; n < 8; ++n) number(numbers({2, 3}), 0.5 * n);
               }),
               {"argument 1 has had 8 values", "3.5", "as a tensor"});
  nn::Module root;
  nn::Linear layer(root, "layer", 3, 2);
  auto around = compile([&](const Tensor& x) { return layer(x); });
  std::vector<Hook> hooks;
  expect_words(told_by([&] {
                 for (int n = 0; n < 8; ++n) {
                   hooks.push_back(layer.on_input([](const Tensor&) {}));
                   around(numbers({2, 3}));
                 }
               }),
               {"not its arguments", "train() and eval()"});
}

// How a length is written is of the symbol, and nobody is told that it was asked for.
TEST_F(RetracedCalls, HowALengthIsWrittenIsOfTheSymbolAndNotNoted) {
  std::vector<std::string> seen;
  const auto f = [&](Tensor x) {
    const Dim rows = x.dim(0), all = reshape(x, {rows * Dim(3)}).dim(0);
    seen.push_back(rows.str() + " " + x.shape().str() + " " + std::to_string(rows.is_constant()) +
                   std::to_string(x.shape().is_constant()) +
                   std::to_string(rows.symbol().is_empty()) + std::to_string(all.times()));
    return x * 2.0;
  };
  f(numbers({8, 3}));
  auto compiled = compile(f);
  for (const std::int64_t rows : {8, 5, 2}) compiled(numbers({rows, 3}));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0], "8 [8,3] 1111");
  EXPECT_EQ(seen[1].substr(seen[1].size() - 4), "0003") << seen[1];
  EXPECT_NE(seen[1].find("<=8"), std::string::npos) << seen[1];
}

}  // namespace
}  // namespace aloft::e2e
