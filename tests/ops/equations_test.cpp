// The equations that formulas of tensors print beside what their ops compute: docs/optimizers.md
// says nothing else than the program does.
#include "ops/equations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "ops/meaning_of_step.h"
#include "optim/kind.h"
#include "optim/tensor_formula.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

constexpr int kSteps = 3;
constexpr double kLr = 0.0625, kDecay = 0.125;  // exact in fp32
// The last is one that OptimizerSpec::rest names.
const std::vector<Shape> kShapes = {{5, 7}, {8, 3}, {33}, {3, 2, 2}, {4, 6}};
const Ints kRest = {0, 0, 0, 0, 1};

std::vector<const optim::FormulaRecord*> formulas_of_tensors() {
  std::vector<const optim::FormulaRecord*> all;
  for (const optim::FormulaRecord* formula : optim::formulas())
    if (formula->is_of_tensors) all.push_back(formula);
  return all;
}

Grid grid_of(const Shape& shape, const HostArray& values) {
  const std::int64_t all = shape.max_numel(), rows = shape.rank() == 0 ? 1 : shape[0].max();
  return {static_cast<std::size_t>(rows), static_cast<std::size_t>(rows == 0 ? 0 : all / rows),
          values.doubles()};
}

HostArray drawn(std::uint64_t seed, int step, std::size_t tensor) {
  HostArray a = HostArray::zeros(DType::F32, kShapes[tensor].max_extents());
  const scalar::RandomKey key{seed, static_cast<std::uint64_t>(step), 0, tensor};
  for (std::int64_t i = 0; i < a.numel(); ++i)
    a[i] = static_cast<double>(static_cast<float>(scalar::normal(key, std::uint64_t(i))));
  return a;
}

bool is_kept(const optim::FormulaRecord& formula, std::size_t k, const Shape& shape, bool is_rest) {
  return formula.state_shape(k, shape, is_rest) != optim::kNotKept;
}
// It keeps other states of what it takes for a matrix than of a vector, if it has two cases.
bool is_matrix(const optim::FormulaRecord& formula, const Shape& shape, bool is_rest) {
  for (std::size_t k = 0; k < formula.states.size(); ++k)
    if (is_kept(formula, k, shape, is_rest) != is_kept(formula, k, Shape{33}, false)) return true;
  return false;
}

// What the equations may name: options, what a step is made with, the tensor and its sides.
Names names_of(const OptimizerSpec& spec, const Shape& shape, int t) {
  Names names;
  for (const auto& option : spec.rule.options.all()) {
    const auto value = [](const auto& v) -> double {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(v)>>)
        return static_cast<double>(v);
      else
        throw std::runtime_error("an option that is no number");
    };
    names[option.first.str()] = Grid::number(std::visit(value, option.second));
  }
  names["lr"] = Grid::number(spec.lr);
  names["weight_decay"] = Grid::number(spec.weight_decay);
  names["decays"] = Grid::number(spec.weight_decay != 0);
  names["t"] = Grid::number(t);
  names["first step"] = Grid::number(t == 1);
  names["rank"] = Grid::number(shape.rank());
  if (shape.rank() == 2) {
    names["height"] = Grid::number(static_cast<double>(shape[0].max()));
    names["width"] = Grid::number(static_cast<double>(shape[1].max()));
  }
  return names;
}

void expect_near(const Grid& got, const std::vector<double>& want, const std::string& what) {
  ASSERT_EQ(got.of.size(), want.size()) << what;
  double most = 0;
  for (const double x : want) most = std::max(most, std::abs(x));
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got.of[i], want[i], 1e-11 * most) << what << ", element " << i;
}

// Which of AdamP's three cases a step was.
struct Cases {
  int by_rows = 0, as_a_whole = 0, neither = 0;
  void count(const Names& names) {
    if (!names.contains("by_rows")) return;
    const bool rows = names.at("by_rows").of[0] != 0, whole = names.at("as_a_whole").of[0] != 0;
    ++(rows ? by_rows : whole ? as_a_whole : neither);
  }
};

// One step of tensor i beside its equations; `kept`: the parameter and the states before it and
// behind it, tensor by tensor.
void expect_step(const OptimizerSpec& spec, std::size_t i, int t, const HostArray& gradient,
                 const std::vector<HostArray>& before, const std::vector<HostArray>& behind,
                 Cases& cases) {
  const optim::FormulaRecord& formula = *spec.rule.formula;
  const Shape& shape = kShapes[i];
  const bool is_rest = kRest[i] != 0, matrix = is_matrix(formula, shape, is_rest);
  if (matrix && shape.rank() > 2) return;  // of several matrices each has its own rows and columns
  Names names = names_of(spec, shape, t);
  names["p"] = grid_of(shape, before[i]);
  names["g"] = grid_of(shape, gradient);
  const auto at = [&](std::size_t k) { return (k + 1) * kShapes.size() + i; };
  for (std::size_t k = 0; k < formula.states.size(); ++k)
    names[std::string(formula.states[k])] =
        grid_of(formula.state_shape(k, shape, is_rest), before[at(k)]);
  evaluate_equations(formula.text, matrix, names);
  const std::string what = std::string(formula.name) + ", tensor " + std::to_string(i) + ", step " +
                           std::to_string(t) + ": ";
  expect_near(names.at("p'"), behind[i].doubles(), what + "p'");
  for (std::size_t k = 0; k < formula.states.size(); ++k) {
    const std::string name = std::string(formula.states[k]) + "'";
    ASSERT_EQ(names.contains(name), is_kept(formula, k, shape, is_rest)) << what << name;
    if (names.contains(name)) expect_near(names.at(name), behind[at(k)].doubles(), what + name);
  }
  cases.count(names);
}

Cases expect_equations(const optim::FormulaRecord& formula, const Attrs& options, double decay) {
  const OptimizerSpec spec{.rule = {&formula, options}, .lr = kLr, .weight_decay = decay};
  SCOPED_TRACE(options.str());
  Cases cases;
  const MeaningOfStep step(spec, kShapes, kRest);
  std::vector<HostArray> kept;
  for (std::size_t i = 0; i < kShapes.size(); ++i) kept.push_back(drawn(5, 0, i));
  kept = step.start(kept);
  for (int t = 1; t <= kSteps; ++t) {
    std::vector<HostArray> gradients;
    for (std::size_t i = 0; i < kShapes.size(); ++i) gradients.push_back(drawn(3, t, i));
    const std::vector<HostArray> behind = step(kept, gradients, t - 1);
    for (std::size_t i = 0; i < kShapes.size(); ++i)
      expect_step(spec, i, t, gradients[i], kept, behind, cases);
    kept = behind;
  }
  return cases;
}

// The options that a formula is tested with, and each with one of them moved.
std::vector<Attrs> variants(const optim::FormulaRecord& formula) {
  std::vector<Attrs> all = formula.samples;
  for (const Attrs& sample : formula.samples)
    for (const auto& option : sample.all()) {
      Attrs moved = sample;
      if (const double* number = std::get_if<double>(&option.second))
        moved.set(option.first, *number * 0.75);
      else if (const bool* is_on = std::get_if<bool>(&option.second))
        moved.set(option.first, !*is_on);
      all.push_back(moved);
    }
  return all;
}

TEST(Equations, AreWhatStepsCompute) {
  ASSERT_GE(formulas_of_tensors().size(), 4U);
  for (const optim::FormulaRecord* formula : formulas_of_tensors())
    for (const Attrs& options : variants(*formula))
      for (const double decay : {kDecay, 0.0}) {
        expect_equations(*formula, options, decay);
        if (HasFatalFailure()) return;
      }
}

// With a wide angle some tensors lose a part by rows, some as a whole, some none.
TEST(Equations, OfAdamPHoldInEachCase) {
  const optim::FormulaRecord& formula = optim::formula_named("adamp");
  Cases all;
  for (const double delta : {0.1, 0.5, 1.0, 2.0}) {
    Attrs options = formula.options;
    options.set("delta", delta);
    const Cases cases = expect_equations(formula, options, kDecay);
    all.by_rows += cases.by_rows;
    all.as_a_whole += cases.as_a_whole;
    all.neither += cases.neither;
  }
  EXPECT_GT(all.by_rows, 0);
  EXPECT_GT(all.as_a_whole, 0);
  EXPECT_GT(all.neither, 0);
}

TEST(Equations, NameEveryOptionAndEveryState) {
  for (const optim::FormulaRecord* formula : formulas_of_tensors()) {
    const std::set<std::string> words = words_of(formula->text);
    for (const auto& option : formula->options.all()) {
      const std::string& name = option.first.str();
      EXPECT_TRUE(words.contains(name)) << formula->name << ": " << name;
    }
    for (const std::string_view state : formula->states)
      EXPECT_TRUE(words.contains(std::string(state) + "'")) << formula->name << ": " << state;
    EXPECT_TRUE(words.contains("p'")) << formula->name;
  }
}

double evaluated(const std::string& text) {
  const Names names = {
      {"a", Grid::number(3)}, {"first step", Grid::number(1)}, {"x", {2, 2, {1, 2, 3, 4}}}};
  const Grid out = Expression(text, names).value();
  EXPECT_TRUE(out.is_number()) << text;
  return out.of[0];
}

TEST(Equations, AreReadAsPeopleReadThem) {
  EXPECT_EQ(evaluated("1 + 2 * a^2 - -a / 3"), 20);
  EXPECT_EQ(evaluated("(first step ? 2 : 4) + (a > 2 and not a < 1 ? 1 : 0)"), 3);
  EXPECT_EQ(evaluated("norm(x - x + 2) + rms(x - x + 2)"), 6);
  EXPECT_EQ(evaluated("max(row_sum(x)) * 100 + max(col_mean(x)) * 10 + row_count(x)"), 732);
  EXPECT_EQ(evaluated("sum(x @ x^T)"), 5 + 11 + 11 + 25);
  EXPECT_EQ(evaluated("max(min(a, 2), |1e-3 - 4|)"), 3.999);
  for (const char* wrong : {"1 +", "b", "(1", "cube(x)", "1 2", "x @ row_sum(x)^T", "x ? 1 : 2"})
    EXPECT_THROW(evaluated(wrong), std::runtime_error) << wrong;
  Names names;
  const std::string repeated = "3 times: b = a; a = b + 1  # counted";
  evaluate_equations({"a = 1", "of matrices:", "a = 2", repeated, "of other tensors:", "a = 9",
                      "of all:", "c = a"},
                     true, names);
  EXPECT_EQ(names.at("c").of[0], 5);
}

}  // namespace
}  // namespace aloft
