// Evaluates the equations that formulas print, in double: kEquations, whose form
// src/optim/equations.h says.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "optim/equations.h"

namespace aloft {

// A tensor, its first axis as rows and what is left as columns; a number is one row of one.
struct Grid {
  std::size_t rows = 1, columns = 1;
  std::vector<double> of;

  static Grid number(double x) { return {1, 1, {x}}; }
  static Grid zeros(std::size_t rows, std::size_t columns) {
    return {rows, columns, std::vector<double>(rows * columns)};
  }
  bool is_number() const { return rows == 1 && columns == 1; }
  // A length of 1 stands for any.
  double at(std::size_t row, std::size_t column) const {
    return of[(rows == 1 ? 0 : row) * columns + (columns == 1 ? 0 : column)];
  }
};

using Names = std::map<std::string, Grid, std::less<>>;

// One expression, evaluated while it is read. What is wrong with it is a std::runtime_error.
class Expression {
 public:
  Expression(std::string_view text, const Names& names) : text_(text), names_(names) {}

  Grid value() {
    const Grid all = choice();
    skip();
    if (at_ != text_.size()) fail("what is this");
    return all;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at " + std::to_string(at_) + " of " + std::string(text_));
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool takes(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!takes(c)) fail(std::string("no ") + c);
  }
  // The word that begins here, a name's ' with it; nothing is taken.
  std::string word() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalpha(static_cast<unsigned char>(text_[end])) || text_[end] == '_' ||
            (end > at_ && std::isdigit(static_cast<unsigned char>(text_[end])))))
      ++end;
    if (end > at_ && end < text_.size() && text_[end] == '\'') ++end;
    return std::string(text_.substr(at_, end - at_));
  }
  bool takes_word(std::string_view wanted) {
    if (word() != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  // condition ? value : other
  Grid choice() {
    const Grid condition = any_of();
    if (!takes('?')) return condition;
    const Grid value = choice();
    need(':');
    const Grid other = choice();
    if (condition.is_number()) return condition.of[0] != 0 ? value : other;
    const auto only = [](double holds, double x) { return holds != 0 ? x : 0; };
    return with(with(condition, value, only),
                with(of_each(condition, std::logical_not<>()), other, only), std::plus<>());
  }
  Grid any_of() {
    Grid all = all_of();
    while (takes_word("or")) all = with(all, all_of(), [](double a, double b) { return a || b; });
    return all;
  }
  Grid all_of() {
    Grid all = comparison();
    while (takes_word("and"))
      all = with(all, comparison(), [](double a, double b) { return a && b; });
    return all;
  }
  Grid comparison() {
    if (takes_word("not")) return of_each(comparison(), [](double x) { return x == 0; });
    const Grid left = terms();
    if (takes('<')) return with(left, terms(), [](double a, double b) { return a < b; });
    if (takes('>')) return with(left, terms(), [](double a, double b) { return a > b; });
    return left;
  }
  Grid terms() {
    Grid sum = factors();
    while (true) {
      if (takes('+'))
        sum = with(sum, factors(), std::plus<>());
      else if (takes('-'))
        sum = with(sum, factors(), std::minus<>());
      else
        return sum;
    }
  }
  Grid factors() {
    Grid all = power();
    while (true) {
      if (takes('*'))
        all = with(all, power(), std::multiplies<>());
      else if (takes('/'))
        all = with(all, power(), std::divides<>());
      else if (takes('@'))
        all = product(all, power());
      else
        return all;
    }
  }
  Grid power() {
    if (takes('-')) return of_each(power(), std::negate<>());
    const Grid base = atom();
    if (!takes('^')) return base;
    if (takes_word("T")) return transposed(base);
    return with(base, atom(), [](double a, double b) { return std::pow(a, b); });
  }
  Grid atom() {
    if (takes('(')) {
      const Grid inner = choice();
      need(')');
      return inner;
    }
    if (takes('|')) {
      const Grid inner = terms();
      need('|');
      return of_each(inner, [](double x) { return std::abs(x); });
    }
    std::string name = word();
    if (name.empty()) return literal();
    at_ += name.size();
    if (takes('(')) return call(name);
    if (name == "product") return product_of();
    if (name == "first" && takes_word("step")) name = "first step";
    const auto it = names_.find(name);
    if (it == names_.end()) fail("no " + name);
    return it->second;
  }
  Grid literal() {
    const std::string rest(text_.substr(at_));
    char* end = nullptr;
    const double x = std::strtod(rest.c_str(), &end);
    if (end == rest.c_str()) fail("no value");
    at_ += static_cast<std::size_t>(end - rest.c_str());
    return Grid::number(x);
  }
  // product for i from 1 to t of value
  Grid product_of() {
    const auto need_word = [&](const char* wanted) {
      if (!takes_word(wanted)) fail(std::string("no ") + wanted);
    };
    need_word("for");
    const std::string name = word();
    at_ += name.size();
    need_word("from");
    const Grid first = terms();
    need_word("to");
    const Grid last = terms();
    need_word("of");
    Names names = names_;
    Grid all = Grid::number(1);
    std::size_t taken = 0;
    for (double i = first.of.at(0); i <= last.of.at(0); ++i) {
      names[name] = Grid::number(i);
      Expression of(text_.substr(at_), names);
      all = with(all, of.factors(), std::multiplies<>());
      taken = of.at_;
    }
    if (taken == 0) fail("a product of nothing");
    at_ += taken;
    return all;
  }
  Grid call(const std::string& function) {
    const Grid x = choice();
    if (takes(',')) {
      const Grid y = choice();
      need(')');
      if (function == "max") return with(x, y, [](double a, double b) { return std::max(a, b); });
      if (function == "min") return with(x, y, [](double a, double b) { return std::min(a, b); });
      fail("no function of two " + function);
    }
    need(')');
    return of_one(function, x);
  }
  Grid of_one(const std::string& function, const Grid& x) const {
    if (function == "sqrt") return of_each(x, [](double v) { return std::sqrt(v); });
    if (function == "sign")
      return of_each(x, [](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0; });
    if (function == "max") return Grid::number(*std::max_element(x.of.begin(), x.of.end()));
    if (function.starts_with("row_")) return of_rows(function.substr(4), x);
    if (function.starts_with("col_")) return transposed(of_rows(function.substr(4), transposed(x)));
    return of_rows(function, {1, x.of.size(), x.of});
  }
  // One number a row.
  Grid of_rows(const std::string& function, const Grid& x) const {
    Grid out = Grid::zeros(x.rows, 1);
    const auto count = static_cast<double>(x.columns);
    if (function == "count") return Grid::number(count);
    for (std::size_t i = 0; i < x.rows; ++i) {
      double sum = 0, squares = 0;
      for (std::size_t j = 0; j < x.columns; ++j) {
        sum += x.at(i, j);
        squares += x.at(i, j) * x.at(i, j);
      }
      if (function == "sum")
        out.of[i] = sum;
      else if (function == "mean")
        out.of[i] = sum / count;
      else if (function == "norm")
        out.of[i] = std::sqrt(squares);
      else if (function == "rms")
        out.of[i] = std::sqrt(squares / count);
      else
        fail("no function " + function);
    }
    return out;
  }

  template <class F>
  static Grid of_each(Grid x, const F& f) {
    for (double& v : x.of) v = static_cast<double>(f(v));
    return x;
  }
  template <class F>
  Grid with(const Grid& a, const Grid& b, const F& f) const {
    const auto length = [&](std::size_t one, std::size_t other) {
      if (one != other && one != 1 && other != 1) fail("two shapes");
      return one == 1 ? other : one;
    };
    Grid out = Grid::zeros(length(a.rows, b.rows), length(a.columns, b.columns));
    for (std::size_t i = 0; i < out.rows; ++i)
      for (std::size_t j = 0; j < out.columns; ++j)
        out.of[i * out.columns + j] = static_cast<double>(f(a.at(i, j), b.at(i, j)));
    return out;
  }
  Grid product(const Grid& a, const Grid& b) const {
    if (a.columns != b.rows) fail("no product");
    Grid out = Grid::zeros(a.rows, b.columns);
    for (std::size_t i = 0; i < a.rows; ++i)
      for (std::size_t k = 0; k < b.rows; ++k)
        for (std::size_t j = 0; j < b.columns; ++j)
          out.of[i * b.columns + j] += a.at(i, k) * b.at(k, j);
    return out;
  }
  static Grid transposed(const Grid& a) {
    Grid out = Grid::zeros(a.columns, a.rows);
    for (std::size_t i = 0; i < a.rows; ++i)
      for (std::size_t j = 0; j < a.columns; ++j) out.of[j * a.rows + i] = a.at(i, j);
    return out;
  }

  std::string_view text_;
  const Names& names_;
  std::size_t at_ = 0;
};

// Evaluates the lines that hold for a tensor, in their order, and adds what they say to `names`.
inline void evaluate_equations(const std::vector<std::string>& lines, bool is_matrix,
                               Names& names) {
  const auto say = [&](std::string_view equation) {
    const std::size_t equals = equation.find(" = ");
    if (equals == std::string_view::npos)
      throw std::runtime_error("no equation: " + std::string(equation));
    const Grid value = Expression(equation.substr(equals + 3), names).value();
    names[std::string(equation.substr(0, equals))] = value;
  };
  bool holds = true;
  for (const std::string& whole : lines) {
    std::string_view line = std::string_view(whole).substr(0, whole.find('#'));
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    if (line.empty()) continue;
    if (line.back() == ':') {
      if (line != optim::kOfMatrices && line != optim::kOfOthers && line != optim::kOfAll)
        throw std::runtime_error("no heading: " + whole);
      holds = line == optim::kOfAll || (line == optim::kOfMatrices) == is_matrix;
      continue;
    }
    if (!holds) continue;
    int times = 1;
    if (const std::size_t repeated = line.find(" times: "); repeated != std::string_view::npos) {
      times = std::stoi(std::string(line.substr(0, repeated)));
      line = line.substr(repeated + std::string_view(" times: ").size());
    }
    for (int i = 0; i < times; ++i)
      for (std::string_view rest = line; !rest.empty();) {
        const std::size_t end = rest.find("; ");
        say(rest.substr(0, end));
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 2);
      }
  }
}

// All words of the lines, comments' too.
inline std::set<std::string> words_of(const std::vector<std::string>& lines) {
  std::set<std::string> all;
  for (const std::string& line : lines) {
    std::string word;
    for (const char c : line + " ")
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '\'')
        word += c;
      else if (!word.empty())
        all.insert(std::exchange(word, {}));
  }
  return all;
}

}  // namespace aloft
