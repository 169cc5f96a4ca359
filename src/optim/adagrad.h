// Adagrad (Duchi et al. 2011): each element's rate falls with the sum of its squared gradients; L2
// regularisation; as torch.optim.Adagrad, with its defaults.
#pragma once

#include <array>
#include <string_view>

#include "optim/formula.h"
#include "optim/spec.h"

namespace aloft::optim {

// Adagrad.
struct Adagrad {
  double lr = 1e-2;         // base rate, times the schedule's factor
  double lr_decay = 0;      // the rate of update t is divided by 1 + (t - 1) * lr_decay
  double initial_sum = 0;   // what the sum of squares begins at
  double eps = 1e-10;       // added to the root of the sum
  double weight_decay = 0;  // L2, added to the gradient
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() {
    return FieldList{
        option("lr_decay", &Adagrad::lr_decay, {0, 1}, "by which the rate falls with each update",
               "the rate is that of the new decay"),
        option("initial_sum", &Adagrad::initial_sum, {0, 1e6}, "what the sum of squares begins at",
               "only an optimizer that begins reads it"),
        option("eps", &Adagrad::eps, {0, 1}, "added to the root of the sum of squares",
               "the sum goes on; small gradients move weights more or less")};
  }
  static constexpr std::array<std::string_view, 1> kStates = {"sum"};
  static constexpr std::array<std::string_view, 1> kNotNegative = {"sum"};
  static constexpr std::array<std::string_view, 4> kNumbers = {
      "(lr / (1 + (t - 1) * lr_decay))", "initial_sum", "eps", "weight_decay"};
  static constexpr std::array<std::string_view, 1> kFlags = {"first step"};
  std::array<double, 4> numbers(const UpdateStep& s) const {
    return {s.lr / (1 + static_cast<double>(s.applied) * lr_decay), initial_sum, eps,
            s.weight_decay};
  }
  std::array<bool, 1> flags(const UpdateStep& s) const { return {s.applied == 0}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [rate, begin, eps, decay] = e.numbers;
    const auto& [decays, first] = e.flags;
    const auto& [old] = e.states;
    const auto g = where(decays, e.g + decay * e.p, e.g);
    const auto sum = where(first, begin, old) + g * g;
    return updated(e.p - rate * g / (sqrt(sum) + eps), sum);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
