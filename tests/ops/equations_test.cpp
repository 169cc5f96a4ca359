// The equations that formulas print, as they have them and as docs/optimizers.md shows them, beside
// what their ops compute: the page says nothing else than the program does, and says what each of
// its names is.
#include "ops/equations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "ops/meaning_of_step.h"
#include "optim/kind.h"
#include "optim/tensor_formula.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

constexpr int kSteps = 7;                       // RAdam is another from step 6 on
constexpr double kLr = 0.0625, kDecay = 0.125;  // exact in fp32
// The last is one that OptimizerSpec::rest names.
const std::vector<Shape> kShapes = {{5, 7}, {8, 3}, {33}, {3, 2, 2}, {4, 6}};
const Ints kRest = {0, 0, 0, 0, 1}, kDecays = {1, 0, 1, 0, 1};

std::vector<const optim::FormulaRecord*> formulas_of_tensors() {
  std::vector<const optim::FormulaRecord*> all;
  for (const optim::FormulaRecord* formula : optim::formulas())
    if (formula->is_of_tensors) all.push_back(formula);
  return all;
}

// The equations of each formula as the page has them: the blocks below a kind's heading, each below
// the name of its op where there are several.
std::map<std::string, std::vector<std::string>> equations_of_page() {
  std::ifstream page("docs/optimizers.md");
  std::map<std::string, std::vector<std::string>> all;
  std::string name, line;
  bool is_in = false;
  const auto quoted = [&](std::size_t at) { return line.substr(at, line.find('`', at) - at); };
  while (std::getline(page, line)) {
    if (line.starts_with("### `")) name = quoted(5);
    constexpr std::string_view kEnd = "_update`:";
    if (line.starts_with("`") && line.ends_with(kEnd))
      name = line.substr(1, line.size() - kEnd.size() - 1);
    if (line == "```text" || line == "```") {
      is_in = line == "```text" && !name.empty();
      continue;
    }
    if (!is_in) continue;
    std::vector<std::string>& lines = all[name];
    const std::size_t first = line.find_first_not_of(' ');
    const bool is_of_case = !lines.empty() && lines[0].ends_with(":");
    if (first >= 4 && (!is_of_case || first >= 6))
      lines.back() += " " + line.substr(first);
    else
      lines.push_back(line.substr(first));
  }
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
Names names_of(const OptimizerSpec& spec, const Shape& shape, bool decays, int t) {
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
  names["decays"] = Grid::number(decays);
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
void expect_step(const OptimizerSpec& spec, const std::vector<std::string>& lines, std::size_t i,
                 int t, const HostArray& gradient, const std::vector<HostArray>& before,
                 const std::vector<HostArray>& behind, Cases& cases) {
  const optim::FormulaRecord& formula = *spec.rule.formula;
  const Shape& shape = kShapes[i];
  const bool is_rest = kRest[i] != 0, matrix = is_matrix(formula, shape, is_rest);
  if (matrix && shape.rank() > 2) return;  // of several matrices each has its own rows and columns
  Names names = names_of(spec, shape, kDecays[i] != 0, t);
  names["p"] = grid_of(shape, before[i]);
  names["g"] = grid_of(shape, gradient);
  const auto at = [&](std::size_t k) { return (k + 1) * kShapes.size() + i; };
  for (std::size_t k = 0; k < formula.states.size(); ++k)
    names[std::string(formula.states[k])] =
        grid_of(formula.state_shape(k, shape, is_rest), before[at(k)]);
  evaluate_equations(lines, matrix, names);
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
  static const std::map<std::string, std::vector<std::string>> page = equations_of_page();
  const auto shown = page.find(std::string(formula.name));
  if (shown == page.end()) {
    ADD_FAILURE() << "the page has no equations of " << formula.name;
    return {};
  }
  const OptimizerSpec spec{.rule = {&formula, options}, .lr = kLr, .weight_decay = decay};
  SCOPED_TRACE(options.str());
  Cases cases;
  const MeaningOfStep step(spec, kShapes, kRest, kDecays);
  std::vector<HostArray> kept;
  for (std::size_t i = 0; i < kShapes.size(); ++i) kept.push_back(drawn(5, 0, i));
  kept = step.start(kept);
  for (int t = 1; t <= kSteps; ++t) {
    std::vector<HostArray> gradients;
    for (std::size_t i = 0; i < kShapes.size(); ++i) gradients.push_back(drawn(3, t, i));
    const std::vector<HostArray> behind = step(kept, gradients, t - 1);
    for (std::size_t i = 0; i < kShapes.size(); ++i)
      for (const auto* lines : {&formula.text, &shown->second})
        expect_step(spec, *lines, i, t, gradients[i], kept, behind, cases);
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
  ASSERT_GE(optim::formulas().size(), 20U);
  for (const optim::FormulaRecord* formula : optim::formulas())
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

// Each name of the page's equations is a key or a state of its kind, a symbol of the table, or said
// by a line before.
TEST(Equations, HaveNoNameThatThePageDoesNotSay) {
  std::ifstream page("docs/optimizers.md");
  std::set<std::string> symbols;
  bool is_table = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("### ")) is_table = line == "### Symbols";
    if (!is_table || !line.starts_with("| ")) continue;
    const std::size_t end = line.find(" | ");
    symbols.merge(words_of({line.substr(0, end)}));
    for (const char* also : {"decays", "first", "step"})  // said beside another
      if (words_of({line.substr(end)}).contains(also)) symbols.insert(also);
  }
  ASSERT_TRUE(symbols.contains("weight_decay"));
  const auto all = equations_of_page();
  for (const optim::FormulaRecord* formula : optim::formulas()) {
    std::set<std::string> known = symbols;
    for (const auto& option : formula->options.all()) known.insert(option.first.str());
    known.insert(formula->states.begin(), formula->states.end());
    for (const std::string& line : all.at(std::string(formula->name))) {
      const std::string equation = line.substr(0, line.find('#'));
      if (equation.ends_with(":")) continue;
      std::string said = equation;
      for (std::size_t equals; (equals = said.find(" = ")) != std::string::npos;) {
        const std::size_t begin = said.find_last_of("; ", equals - 1);
        const std::size_t from = begin == std::string::npos ? 0 : begin + 1;
        known.insert(said.substr(from, equals - from));
        said[equals + 1] = ' ';
      }
      for (const std::string& word : words_of({equation})) {
        const bool is_name = std::isalpha(static_cast<unsigned char>(word[0])) != 0;
        if (is_name && word != "times" && word != "e")
          EXPECT_TRUE(known.contains(word)) << formula->name << ": " << word;
      }
    }
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
  EXPECT_EQ(evaluated("sum(sign(x - 2)) + product for i from 1 to a of (i + 1) / 2"), 1 + 3);
  EXPECT_EQ(evaluated("sum(x > 2 ? x : -1)"), 3 + 4 - 2);
  for (const char* wrong : {"1 +", "b", "(1", "cube(x)", "1 2", "x @ row_sum(x)^T", "x ? 1 2"})
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
