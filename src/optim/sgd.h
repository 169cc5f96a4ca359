// Stochastic gradient descent (Robbins and Monro 1951), as torch.optim.SGD: a weight decay holds
// for every parameter.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "optim/formula.h"
#include "optim/momentum.h"
#include "optim/spec.h"

namespace aloft::optim {

// Inside: the formula of what keeps nothing of a parameter.
struct PlainSgd {
  static auto fields() { return FieldList<>{}; }
  static constexpr std::array<std::string_view, 0> kStates = {};
  static constexpr std::array<std::string_view, 2> kNumbers = {"lr", "weight_decay"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  std::array<double, 2> numbers(const UpdateStep& s) const { return {s.lr, s.weight_decay}; }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [lr, decay] = e.numbers;
    const auto& [decays] = e.flags;
    return updated(e.p - lr * where(decays, e.g + decay * e.p, e.g));
  }
};

// Gradient descent, as torch.optim.SGD: with a momentum it is Momentum.
struct Sgd {
  double lr = 1e-2;         // base rate, times the schedule's factor
  double momentum = 0;      // share of the last update's direction that is kept; 0: none
  double dampening = 0;     // share of the gradient that is left out of the direction
  bool nesterov = false;    // Nesterov's momentum: one step ahead
  double weight_decay = 0;  // L2, added to the gradient
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take. UserError E0806 for nesterov without momentum, or with
  // dampening.
  operator OptimizerSpec() const;

  // Inside: its options, and the formula of those without a momentum.
  using Formula = PlainSgd;
  static auto fields() { return momentum_options<Sgd>(); }
  std::optional<OptionMisfit> misfit() const;
  UpdateRule rule() const;
};

// Inside: what a recipe begins with.
inline constexpr double kSgdRecipeRate = 1e-3;

}  // namespace aloft::optim
