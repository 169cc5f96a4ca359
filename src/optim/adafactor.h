// Adafactor (Shazeer and Stern 2018, algorithms 4 and 5), as torch.optim.Adafactor: of a matrix it
// keeps the mean squares of rows and columns alone, whose product stands for those of the elements;
// rates are shares of the tensor's size, steps are clipped.
#pragma once

#include <algorithm>
#include <cmath>

#include "optim/equations.h"
#include "optim/spec.h"
#include "optim/tensor_formula.h"

namespace aloft::optim {

// Adafactor.
struct Adafactor {
  double lr = 1e-2;                  // largest share of the tensor's root mean square
  double beta2_decay = -0.8;         // the newest square's weight is t to this power
  double eps_square = 1.1920929e-7;  // least mean square, and root of the least square
  double eps_size = 1e-3;            // least size of a tensor
  double clip = 1;                   // largest root mean square of a step, of its rate
  double weight_decay = 0;           // shrinks the weight by lr * weight_decay
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/tensor_formula.h).
  static auto fields() {
    constexpr std::string_view kOther = "the mean squares go on; steps are of another size";
    return FieldList{
        option("beta2_decay", &Adafactor::beta2_decay, {-10, 0},
               "the newest square's weight is t to this power", kOther),
        option("eps_square", &Adafactor::eps_square, {0, 1}, "least mean square", kOther),
        option("eps_size", &Adafactor::eps_size, {0, 1}, "least size of a tensor", kOther),
        option("clip", &Adafactor::clip, {1e-6, 1e6}, "largest root mean square of a step",
               kOther)};
  }
  static constexpr std::array<std::string_view, 3> kStates = {"row_var", "col_var", "variance"};
  static constexpr double kLeastStates = 0;
  static constexpr std::array<std::string_view, 3> kNumbers = {
      "min(lr, 1 / sqrt(t))", "t^beta2_decay", "(1 - lr * weight_decay)"};
  std::array<double, 3> numbers(const UpdateStep& s) const {
    const double t = static_cast<double>(s.applied + 1);
    return {std::min(s.lr, 1 / std::sqrt(t)), std::pow(t, beta2_decay), 1 - s.lr * s.weight_decay};
  }
  // Of more than two axes each matrix of the last two has its own rows and columns.
  static Shape state_shape(std::size_t k, const Shape& parameter, bool) {
    if (parameter.rank() < 2) return k == 2 ? parameter : kNotKept;
    if (k == 2) return kNotKept;
    Shape out = parameter;
    out[k == 0 ? -1 : -2] = 1;
    return out;
  }
  static constexpr std::array<std::string_view, 12> kEquations = {
      kOfMatrices,
      "row_var' = row_var + t^beta2_decay * (row_mean(g^2) - row_var)",
      "col_var' = col_var + t^beta2_decay * (col_mean(g^2) - col_var)",
      "# of more than two axes: each matrix of the last two has rows and columns of its own",
      "v = row_var' * col_var' / max(mean(row_var'), eps_square)",
      kOfOthers,
      "variance' = variance + t^beta2_decay * (g^2 - variance)",
      "v = variance'",
      kOfAll,
      "u = g / sqrt(max(v, eps_square^2))",
      "step = min(lr, 1 / sqrt(t)) * max(rms(p), eps_size) / max(rms(u) / clip, 1)",
      "p' = (decays ? p * (1 - lr * weight_decay) : p) - step * u"};
  template <class E>
  auto step(const E& e) const {
    const auto& fresh = e.numbers[1];
    const auto mean = [&](const auto& before, const auto& now) {
      return before + fresh * (now - before);
    };
    if (e.shape.rank() < 2) {
      const auto v = mean(e.states[2], e.g * e.g);
      return updated(moved(e, v), e.states[0], e.states[1], v);
    }
    const auto extent = [&](int axis) { return static_cast<double>(e.shape[axis].max()); };
    const auto rows = mean(e.states[0], squared_norm(e.g, -1) / extent(-1));
    const auto columns = mean(e.states[1], squared_norm(e.g, -2) / extent(-2));
    const auto whole = maximum(sum(rows, {-2}, true) / extent(-2), eps_square);
    return updated(moved(e, rows * columns / whole), rows, columns, e.states[2]);
  }
  UpdateRule rule() const;

 private:
  // The parameter, one step on, by the gradient over the root of the mean square.
  template <class E, class T>
  auto moved(const E& e, const T& mean_square) const {
    const auto& rate = e.numbers[0];
    const auto& shrink = e.numbers[2];
    const double count = static_cast<double>(e.shape.max_numel());
    const auto size = maximum(sqrt(squared_norm(e.p) / count), eps_size);
    const auto p = e.decays ? e.p * shrink : e.p;
    const auto u = e.g / sqrt(maximum(mean_square, eps_square * eps_square));
    const auto length = sqrt(squared_norm(u)) / (std::sqrt(count) * clip);
    return p - u * (size * rate / maximum(length, 1.0));
  }
};

}  // namespace aloft::optim
