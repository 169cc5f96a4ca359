// Calls of compiled functions: which shapes they take, what becomes of their results.
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "nn/batch_norm.h"
#include "nn/linear.h"
#include "numbers.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/concat.h"
#include "ops/constant.h"
#include "ops/cumsum.h"
#include "ops/gather.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/sort.h"
#include "ops/transpose.h"
#include "optim/sgd.h"
#include "refusal.h"

namespace aloft::e2e {
namespace {

class CompiledCalls : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    omp_set_num_threads(1);
    eager().clear_tape();
    manual_seed(1);
  }
};

// --- arguments

TEST_F(CompiledCalls, BatchesThatDifferAreRefusedAsEagerDoes) {
  const auto add_up = [](Tensor x, Tensor y) { return x + y; };
  auto compiled = compile(add_up);
  const auto x8 = numbers({8, 3}), x4 = numbers({4, 3}), y8 = numbers({8, 3}, 50),
             y4 = numbers({4, 3}, 60);
  expect_words(refusal([&] { add_up(x4, y8); }), {"E0203"});
  // Before anything was compiled, and behind calls of either size.
  expect_words(refusal([&] { compiled(x4, y8); }), {"E0203", "f32[4,3]", "f32[8,3]"});
  EXPECT_EQ(compiled(x8, y8).to_vector(), add_up(x8, y8).to_vector());
  EXPECT_EQ(compiled(x4, y4).to_vector(), add_up(x4, y4).to_vector());
  for (int i = 0; i < 2; ++i) {
    expect_words(refusal([&] { compiled(x4, y8); }),
                 {"E0203", "argument 0: f32[4,3]; argument 1: f32[8,3]"});
    expect_words(refusal([&] { compiled(x8, y4); }),
                 {"E0203", "argument 0: f32[8,3]; argument 1: f32[4,3]"});
    EXPECT_EQ(compiled(x4, y4).to_vector(), add_up(x4, y4).to_vector());
    EXPECT_EQ(compiled(x8, y8).to_vector(), add_up(x8, y8).to_vector());
  }
}

TEST_F(CompiledCalls, ARefusedStepChangesNoParameter) {
  nn::Module root;
  nn::Linear layer(root, "layer", 3, 2);
  auto [net, opt] = amp::initialize(layer, optim::Sgd{.lr = 0.1}, "O0");
  auto step = compile([&, &net = net, &opt = opt](Tensor x, Tensor y) {
    const Tensor d = net(x) - y;
    return minimize(mean(d * d), opt);
  });
  step(numbers({8, 3}), numbers({8, 2}));
  const std::string before = bytes_of(*layer.weight);
  expect_words(refusal([&] { step(numbers({4, 3}), numbers({8, 2})); }), {"E0203"});
  EXPECT_EQ(bytes_of(*layer.weight), before);
  step(numbers({4, 3}), numbers({4, 2}));
  EXPECT_NE(bytes_of(*layer.weight), before);
}

TEST_F(CompiledCalls, RowsMayDifferWhereTheFunctionMeansThat) {
  const auto rows_of = [](Tensor table, Tensor which) { return gather(table, which, 0); };
  auto compiled = compile(rows_of);
  for (const std::int64_t n : {3, 5, 2}) {
    const Tensor table = numbers({5, 4});
    const Tensor which = from_ints(std::vector<std::int32_t>(n * 4, 2), {n, 4});
    EXPECT_EQ(compiled(table, which).to_vector(), rows_of(table, which).to_vector()) << n;
  }
  // One row is broadcast, also by a program that knows the same function for equal batches.
  const auto add_up = [](Tensor x, Tensor y) { return x + y; };
  auto sums = compile(add_up);
  sums(numbers({8, 3}), numbers({8, 3}));
  EXPECT_EQ(sums(numbers({1, 3}), numbers({8, 3})).to_vector(),
            add_up(numbers({1, 3}), numbers({8, 3})).to_vector());
}

// Each call means the arguments that it has: none that an earlier one had, none that it has not.
TEST_F(CompiledCalls, ArgumentsMayBeLeftOut) {
  const auto masked = [](Tensor x, Tensor mask = Tensor(), Tensor shift = Tensor()) {
    Tensor y = mask.is_defined() ? x * mask : x * 1.0;
    return shift.is_defined() ? y + shift : y;
  };
  for (const int first : {1, 2, 3}) {
    auto compiled = compile(masked);
    for (const std::int64_t rows : {8, 3, 1})
      for (const int count : {first, 1, 3, 2}) {
        const Tensor x = numbers({rows, 3}), mask = numbers({rows, 3}, 5),
                     shift = numbers({rows, 3}, -4);
        const Tensor got = count == 1   ? compiled(x)
                           : count == 2 ? compiled(x, mask)
                                        : compiled(x, mask, shift);
        const Tensor want = count == 1   ? masked(x)
                            : count == 2 ? masked(x, mask)
                                         : masked(x, mask, shift);
        EXPECT_EQ(got.to_vector(), want.to_vector()) << count << " of " << rows << " rows";
      }
    EXPECT_EQ(compiled.programs().plan().programs.size(), 6u);  // each of some rows, and of one
  }
}

TEST_F(CompiledCalls, AFunctionWithoutArgumentsIsAnotherThanOneWith) {
  const auto twice = [](Tensor x = full({2, 2}, 3.0)) { return x * 2.0; };
  auto compiled = compile(twice);
  const Tensor x = numbers({4, 3});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(compiled(x).to_vector(), twice(x).to_vector());
    EXPECT_EQ(compiled().to_vector(), std::vector<double>(4, 6.0));
  }
}

TEST_F(CompiledCalls, ProductsOfSquareMatricesCompile) {
  const auto product = [](Tensor a, Tensor b) { return matmul(a, b); };
  const auto turned = [](Tensor a, Tensor b) { return matmul(a, transpose(b, {1, 0})); };
  const auto flat = [](Tensor a) { return reshape(a, {5 * a.dim(1).max()}); };
  auto compiled = compile(product);
  auto compiled_turned = compile(turned);
  auto compiled_flat = compile(flat);
  const Tensor a = numbers({5, 5}), b = numbers({5, 5}, -3);
  EXPECT_EQ(compiled(a, b).to_vector(), product(a, b).to_vector());
  EXPECT_EQ(compiled_turned(a, b).to_vector(), turned(a, b).to_vector());
  EXPECT_EQ(compiled_flat(a).to_vector(), flat(a).to_vector());
  const Tensor c = numbers({7, 7}), d = numbers({7, 7}, -3);
  EXPECT_EQ(compiled(c, d).to_vector(), product(c, d).to_vector());
  EXPECT_EQ(compiled(a, b).to_vector(), product(a, b).to_vector());
}

TEST_F(CompiledCalls, TheFirstDimensionMayGoAnywhere) {
  using F = Tensor (*)(Tensor);
  const F functions[] = {
      [](Tensor x) {
        return transpose(x, {1, 0});
      },
      [](Tensor x) {
        return sum(transpose(x, {1, 0}) * 2.0, {0});
      },
      [](Tensor x) {
        return sum(transpose(x, {1, 0}) + 1.0, {1});
      },
      [](Tensor x) {
        return softmax(transpose(x, {1, 0}), 1);
      },
      [](Tensor x) { return softmax(x, 0); },
      [](Tensor x) { return cumsum(x, 0); },
      [](Tensor x) {
        return concat({x, x}, 0);
      },
      [](Tensor x) {
        return concat({x, x}, 1);
      },
      [](Tensor x) { return slice(x, 0, 1, 2); },
      [](Tensor x) { return slice(x, 0, 1, x.dim(0).max()); },
      [](Tensor x) {
        return matmul(transpose(x, {1, 0}), x);
      },
      [](Tensor x) {
        return matmul(x, transpose(x, {1, 0}));
      },
      [](Tensor x) { return relu(matmul(x, x, false, true)); },
      [](Tensor x) { return matmul(x, x, true); },
      [](Tensor x) { return flatten(x) * 0.5; },
      [](Tensor x) {
        return reshape(x, {1, x.dim(0), 4}) * 0.5;
      },
      [](Tensor x) { return sort(x, 0)[0]; },
      [](Tensor x) { return x + mean(x, {0}, true); },
      [](Tensor x) { return max(x, {0}); },
  };
  int index = 0;
  for (const F f : functions) {
    auto compiled = compile(f);
    for (const std::int64_t rows : {8, 5, 8, 3, 9}) {
      const Tensor x = numbers({rows, 4}, -2), y = compiled(x);
      EXPECT_EQ(y.shape(), f(x).shape()) << index;
      EXPECT_EQ(y.to_vector(), f(x).to_vector()) << index << " with " << rows << " rows";
    }
    ++index;
  }
}

TEST_F(CompiledCalls, ProgramsForOtherShapesWorkOnTheSameParameters) {
  const auto states = [](bool is_compiled) {
    manual_seed(5);
    nn::Module root;
    nn::Linear layer(root, "layer", 3, 2);
    auto [net, opt] = amp::initialize(layer, optim::Sgd{.lr = 0.01}, "O0");
    const auto step = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
      const Tensor d = net(x) - y;
      return minimize(mean(d * d), opt);
    };
    auto compiled = compile(step);
    for (const std::int64_t rows : {4, 9, 1, 3, 12, 1, 4}) {
      const Tensor x = numbers({rows, 3}), y = numbers({rows, 2}, -1);
      is_compiled ? compiled(x, y) : step(x, y);
    }
    return state_of(layer, opt);
  };
  EXPECT_EQ(states(true), states(false));
}

// The number is this batch's, not the largest one's: there is a program for each.
TEST_F(CompiledCalls, RowsThatAreReadAsANumberAreCompiledFor) {
  auto by_number = [](Tensor x) { return sum(x) * (1.0 / static_cast<double>(x.dim(0).max())); };
  auto by_choice = [](Tensor x) { return x.shape().max_numel() > 12 ? sum(x) : mean(x); };
  auto number = compile(by_number);
  auto choice = compile(by_choice);
  for (const std::int64_t rows : {8, 4, 8, 5, 4}) {
    const Tensor x = numbers({rows, 2});
    EXPECT_EQ(number(x).item(), by_number(x).item()) << rows;
    EXPECT_EQ(choice(x).item(), by_choice(x).item()) << rows;
  }
}

// Compared with a number, or with a length that is one, or asked for.
TEST_F(CompiledCalls, RowsThatAreComparedAreCompiledFor) {
  nn::Module root;
  nn::Linear table(root, "table", 2, 8);  // 8 rows
  using F = std::function<Tensor(Tensor)>;
  const F functions[] = {
      [](Tensor x) { return x.dim(0) == 8 ? x * 2.0 : x + 1.0; },
      [](Tensor x) { return x.dim(0) != 4 ? x * 2.0 : x + 1.0; },
      [](Tensor x) {
        return x.shape() == Shape{8, 2} ? x * 2.0 : x + 1.0;
      },
      [](Tensor x) {
        return x.type() == TensorType{DType::F32, {4, 2}} ? x * 2.0 : x + 1.0;
      },
      [](Tensor x) { return flatten(x).dim(0) == 16 ? x * 2.0 : x + 1.0; },
      [&](Tensor x) {
        const Tensor weight = current_emitter().state(table.weight);
        return x.shape() == weight.shape() ? x * weight : x + 1.0;
      },
      [](Tensor x) { return x * static_cast<double>(x.dim(0).bound()); },
      [](Tensor x) { return x * static_cast<double>(x.dim(0).max()); },
  };
  using Rows = std::vector<std::int64_t>;
  for (std::size_t i = 0; i < std::size(functions); ++i)
    for (const Rows& order : {Rows{8, 4, 8, 5, 9, 8, 1, 4}, Rows{4, 8, 4, 9, 8}}) {
      auto compiled = compile(functions[i]);
      for (const std::int64_t rows : order) {
        const Tensor x = numbers({rows, 2});
        EXPECT_EQ(compiled(x).to_vector(), functions[i](x).to_vector()) << i << ", " << rows;
      }
    }
}

// A batch is never one row, nor what is no multiple of its rows: no reason for more programs.
TEST_F(CompiledCalls, RowsThatCannotBeMeantAreOneProgram) {
  auto f = compile([](Tensor x) {
    const bool may_broadcast = x.dim(0) == 1 || flatten(x).dim(0) == 3;
    return x.dim(1) == 2 && !may_broadcast ? x * 2.0 : x;
  });
  for (const std::int64_t rows : {8, 4, 2, 7})
    EXPECT_EQ(f(numbers({rows, 2})).to_vector(), (numbers({rows, 2}) * 2.0).to_vector());
  EXPECT_EQ(f.programs().plan().programs.size(), 1u);
}

// Where nobody reads it, one program serves all.
TEST_F(CompiledCalls, RowsThatNobodyReadsAreOneProgram) {
  nn::Module root;
  nn::Linear layer(root, "layer", 4, 3);
  auto step = compile([&](Tensor x) { return mean(softmax(relu(layer(x)))); });
  for (const std::int64_t rows : {8, 4, 2, 7}) step(numbers({rows, 4}));
  EXPECT_EQ(step.programs().plan().programs.size(), 1u);
}

TEST_F(CompiledCalls, AFunctionThatWasMovedFromCanBeCalled) {
  auto twice = compile([](Tensor x) { return x * 2.0; });
  const Tensor x = numbers({4, 2});
  const auto want = (x * 2.0).to_vector();
  EXPECT_EQ(twice(x).to_vector(), want);
  auto other = std::move(twice);
  EXPECT_EQ(other(x).to_vector(), want);
  EXPECT_EQ(twice(x).to_vector(), want);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(twice.programs().plan().programs.size(), 1u);
}

TEST_F(CompiledCalls, AFunctorThatIsFalseIsNotUnassigned) {
  struct Scaled {
    double by = 0;
    explicit operator bool() const { return by != 0; }
    Tensor operator()(const Tensor& t) const { return t * by; }
  };
  const Tensor x = numbers({2, 2});
  EXPECT_EQ(compile(Scaled{})(x).to_vector(), (x * 0.0).to_vector());
}

TEST_F(CompiledCalls, ArgumentsWithoutAValueAreRefused) {
  auto doubled = compile([](Tensor x) { return x * 2.0; });
  expect_words(refusal([&] { doubled(Tensor()); }), {"E0302", "empty tensor handle"});
  auto outer = compile([&](Tensor x) { return doubled(x); });
  expect_words(refusal([&] { outer(numbers({2, 2})); }), {"E0304", "traced"});
  expect_words(refusal([&] { compile([](Tensor x) { return x; }).programs(); }), {"E0315"});
}

TEST_F(CompiledCalls, AFunctionThatFailsCanBeCalledAgain) {
  bool fails = true;
  auto f = compile([&](Tensor x) {
    if (fails) throw UserError("E0203", "not now");
    return x * 2.0;
  });
  expect_words(refusal([&] { f(numbers({2, 2})); }), {"not now", "f32[2,2]"});
  fails = false;
  EXPECT_EQ(f(numbers({2, 2})).to_vector(), (numbers({2, 2}) * 2.0).to_vector());
  fails = true;
  expect_words(refusal([&] { f(numbers({2, 3})); }), {"not now"});
  EXPECT_EQ(f(numbers({2, 2})).to_vector(), (numbers({2, 2}) * 2.0).to_vector());
}

// --- memory

// What the machine can never hold is refused before any of it is asked for, with what it would be.
TEST_F(CompiledCalls, APlanLargerThanTheMachineIsRefused) {
  const auto table = [](Tensor x) { return sum(x) + full({1 << 24, 1 << 24}, 1.0); };
  auto compiled = compile(table, {.name = "table"});
  for (int i = 0; i < 2; ++i) try {
      compiled(numbers({2, 2}));
      FAIL() << "no machine has that";
    } catch (const EnvironmentError& e) {
      EXPECT_EQ(e.code(), "E0401");
      expect_words(e.what(), {"the plan of a step", "activations", "1.00 PiB", "in all", "free",
                              "a smaller batch or model", "'table' for argument 0: f32[2,2]"});
    }
}

// --- results

TEST_F(CompiledCalls, ResultsStayWhatTheyWere) {
  const auto twice = [](Tensor x) { return std::vector<Tensor>{x * 2.0, x + 1.0, sum(x)}; };
  std::vector<std::vector<Tensor>> kept;
  {
    auto compiled = compile(twice);
    for (const std::int64_t rows : {6, 6, 3, 9, 1, 0, 6})
      kept.push_back(compiled(numbers({rows, 50}, static_cast<float>(kept.size()))));
  }
  std::vector<std::vector<Tensor>> other;  // over whatever was freed
  for (int i = 0; i < 20; ++i) other.push_back(twice(numbers({9, 50}, -7)));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const std::int64_t rows[] = {6, 6, 3, 9, 1, 0, 6};
    const auto expected = twice(numbers({rows[i], 50}, static_cast<float>(i)));
    for (std::size_t k = 0; k < expected.size(); ++k)
      EXPECT_EQ(kept[i][k].to_vector(), expected[k].to_vector()) << i << " " << k;
  }
}

TEST_F(CompiledCalls, AResultOfATemporaryIsValid) {
  const Tensor t = compile([](Tensor x) { return x * 3.0; })(numbers({300, 50}));
  const Tensor other = numbers({300, 50}, -1) * 5.0;
  EXPECT_EQ(t.to_vector(), (numbers({300, 50}) * 3.0).to_vector());
}

TEST_F(CompiledCalls, ViewsOfResultsStayWhatTheyWere) {
  auto doubled = compile([](Tensor x) { return x * 2.0; });
  Tensor view;
  {
    const Tensor y = doubled(numbers({4, 6}));
    view = reshape(y, {6, 4});
  }
  doubled(numbers({4, 6}, 100));
  EXPECT_EQ(view.to_vector(), (numbers({4, 6}) * 2.0).to_vector());
}

// A variable's new value, returned in another shape, is not the variable's memory.
TEST_F(CompiledCalls, AViewOfAnUpdatedVariableStaysWhatItWas) {
  nn::Module root;
  nn::Linear layer(root, "layer", 3, 2);
  auto [net, opt] = amp::initialize(layer, optim::Sgd{.lr = 0.1}, "O0");
  auto step = compile([&, &net = net, &opt = opt](Tensor x) {
    minimize(mean(net(x) * net(x)), opt);
    return std::make_tuple(flatten(current_emitter().state(layer.weight)),
                           current_emitter().state(layer.weight));
  });
  const Tensor x = numbers({8, 3});
  const auto [flat, whole] = step(x);
  const auto then = flat.to_vector();
  EXPECT_EQ(whole.to_vector(), then);
  minimize(mean(net(x) * net(x)), opt);
  EXPECT_NE(current_emitter().state(layer.weight).to_vector(), then);
  EXPECT_EQ(flat.to_vector(), then);
  EXPECT_EQ(whole.to_vector(), then);
}

TEST_F(CompiledCalls, AResultMayBeTheNextArgument) {
  auto next = compile([](Tensor x, Tensor y) { return std::make_tuple(x + y, x * 0.5, y - 1.0); });
  Tensor a = numbers({5, 7}), b = numbers({5, 7}, -2), c;
  Tensor ea = a, eb = b, ec;
  for (int i = 0; i < 5; ++i) {
    std::tie(a, b, c) = next(b, a);
    std::tie(ea, eb, ec) = std::make_tuple(eb + ea, eb * 0.5, ea - 1.0);
    EXPECT_EQ(a.to_vector(), ea.to_vector()) << i;
    EXPECT_EQ(b.to_vector(), eb.to_vector()) << i;
    EXPECT_EQ(c.to_vector(), ec.to_vector()) << i;
  }
}

TEST_F(CompiledCalls, ResultsHaveTheTypeThatTheyAre) {
  nn::Module root;
  nn::Linear layer(root, "layer", 4, 3);
  const auto f = [&](Tensor x) { return gelu(layer(x)); };
  auto compiled = compile(f);
  for (const std::int64_t rows : {8, 5, 8, 2}) {
    const Tensor x = numbers({rows, 4}, -1), y = compiled(x);
    EXPECT_EQ(y.shape(), (Shape{rows, 3}));
    EXPECT_EQ(y.dim(0).max(), rows);
    EXPECT_EQ(y.to_vector(), f(x).to_vector());
    EXPECT_EQ((y + numbers({rows, 3})).to_vector(), (f(x) + numbers({rows, 3})).to_vector());
    EXPECT_EQ(mean(y * y, {0}).to_vector(), mean(f(x) * f(x), {0}).to_vector());
  }
}

TEST_F(CompiledCalls, FunctionsThatMoveAreTracedAgain) {
  const double factor = 3;
  auto first = compile([factor](Tensor x) { return x * factor; });
  first(numbers({2, 2}));
  auto second = std::move(first);
  EXPECT_EQ(second(numbers({2, 5})).to_vector(), (numbers({2, 5}) * 3.0).to_vector());
}

// --- tensors of a trace

// Behind its trace a tensor is nobody's: it is refused wherever it is used, and never taken for a
// tensor of another trace.
TEST_F(CompiledCalls, ATensorThatAFunctionKeepsIsRefused) {
  nn::Module root;
  nn::Linear layer(root, "layer", 4, 4);
  auto [net, opt] = amp::initialize(layer, optim::Sgd{.lr = 0.1}, "O0");
  Tensor kept;
  const auto f = [&, &net = net](Tensor x) {
    if (!kept.is_defined()) kept = full({4}, 2.0);
    return net(x) * kept;
  };
  auto compiled = compile(f);
  const Tensor x = numbers({8, 4});
  const auto want = compiled(x).to_vector();
  for (const std::int64_t rows : {1, 9})
    expect_words(refusal([&] { compiled(numbers({rows, 4})); }), {"E0304"});
  for (const auto& use : std::vector<std::function<void()>>{
           [&] { kept.to_vector(); },
           [&] { kept.to_ints(); },
           [&] { kept.type(); },
           [&] { kept * 2.0; },
           [&] {
             kept + numbers({1, 4});
           },
           [&] { sum(kept).backward(); },
           [&] { kept.backward(); },
           [&] { compiled(kept); },
           [&, &opt = opt] { minimize(kept, opt); },
           [&] { current_emitter().update(layer.bias, kept); },
       })
    expect_words(refusal(use), {"E0304"});
  EXPECT_EQ(compiled(x).to_vector(), want);
  kept = Tensor();
  EXPECT_EQ(compiled(numbers({1, 4})).to_vector(), (layer(numbers({1, 4})) * 2.0).to_vector());
}

TEST_F(CompiledCalls, ASecondAttemptHasNoTensorsOfTheFirst) {
  Tensor kept;
  auto product = compile([&](Tensor a) {
    if (!kept.is_defined()) kept = a * 2.0;
    return matmul(kept, a);  // of square matrices: traced twice
  });
  expect_words(refusal([&] { product(numbers({5, 5})); }), {"E0304"});
}

// What is no operand of an op, but an update's value or a gradient's.
TEST_F(CompiledCalls, OutsideTensorsAreRefusedInATrace) {
  nn::Module root;
  nn::Linear layer(root, "layer", 4, 4);
  const Tensor outside = numbers({1, 4}), one = full(Shape{}, 1.0);
  const auto gradients = [](Tensor target, Tensor seed, Tensor wrt) {
    const std::span<const Tensor> of(&wrt, 1);
    return current_emitter().gradients(target, seed, of, current_where())[0];
  };
  using F = std::function<Tensor(Tensor)>;
  for (const F& f : {
           F([&](Tensor x) {
             current_emitter().update(layer.bias, reshape(outside, {4}));
             return x;
           }),
           F([&](Tensor x) { return gradients(sum(x * x), full(Shape{}, 1.0), outside); }),
           F([&](Tensor x) { return gradients(sum(x * x), one, x); }),
       })
    expect_words(refusal([&] { compile(f)(numbers({8, 4})); }), {"E0304"});
}

// --- no elements

TEST_F(CompiledCalls, ParametersWithoutAnElementStayWhereTheyAre) {
  struct Empty : nn::Module {
    VariablePtr p = add_parameter("p", {0}, [](float*, std::int64_t) {});
    Tensor operator()(const Tensor& x) const { return sum(use(p)) + sum(x); }
  } empty;
  auto compiled = compile([&](Tensor x) { return empty(x); });
  EXPECT_EQ(compiled(full({2, 3}, 1)).item(), 6);
  EXPECT_EQ(compiled(full({2, 4}, 1)).item(), 8);
  EXPECT_NE(empty.p->buffer, nullptr);
}

// --- no rows

TEST_F(CompiledCalls, NoRowsLeaveRunningStatisticsAlone) {
  for (const bool is_compiled : {false, true}) {
    nn::Module root;
    nn::BatchNorm2d norm(root, "norm", 3);
    const auto f = [&](Tensor x) { return norm(x); };
    auto compiled = compile(f);
    const auto call = [&](std::int64_t rows) {
      const Tensor x = reshape(numbers({rows, 12}), {rows, 3, 2, 2});
      return is_compiled ? compiled(x) : f(x);
    };
    call(4);
    const std::string mean = bytes_of(*norm.running_mean), var = bytes_of(*norm.running_var);
    EXPECT_EQ(call(0).shape(), (Shape{0, 3, 2, 2}));
    EXPECT_EQ(bytes_of(*norm.running_mean), mean);
    EXPECT_EQ(bytes_of(*norm.running_var), var);
    call(3);
    for (const double v : current_emitter().state(norm.running_mean).to_vector())
      EXPECT_TRUE(std::isfinite(v));
  }
}

}  // namespace
}  // namespace aloft::e2e
