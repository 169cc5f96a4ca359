// Stochastic gradient descent with momentum (Polyak 1964; Nesterov's form as Sutskever et al.
// 2013), as torch.optim.SGD computes it and MindSpore's Momentum names it: a weight decay holds for
// every parameter.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "optim/formula.h"
#include "optim/spec.h"

namespace aloft::optim {

// Inside: what a program says of a momentum.
template <class O>
auto momentum_options() {
  return FieldList{
      option("momentum", &O::momentum, {0, 1}, "share of the last direction that is kept",
             "the sum of past gradients goes on, and fades faster or slower"),
      option("dampening", &O::dampening, {}, "share of the gradient left out of the direction",
             "the sum of past gradients goes on, and takes in new ones another way"),
      option("nesterov", &O::nesterov, {}, "Nesterov's momentum: one step ahead",
             "the sum of past gradients goes on, and is applied another way")};
}

// Gradient descent along a fading sum of gradients.
struct Momentum {
  double lr = 1e-2;         // base rate, times the schedule's factor
  double momentum = 0.9;    // share of the last update's direction that is kept; 0: Sgd
  double dampening = 0;     // share of the gradient that is left out of the direction
  bool nesterov = false;    // Nesterov's momentum: one step ahead
  double weight_decay = 0;  // L2, added to the gradient
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take. UserError E0806 for nesterov without momentum, or with
  // dampening.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() { return momentum_options<Momentum>(); }
  static constexpr std::array<std::string_view, 1> kStates = {"momentum_buffer"};
  static constexpr std::array<std::string_view, 4> kNumbers = {"lr", "momentum", "(1 - dampening)",
                                                               "weight_decay"};
  static constexpr std::array<std::string_view, 2> kFlags = {"first step", "nesterov"};
  std::array<double, 4> numbers(const UpdateStep& s) const {
    return {s.lr, momentum, 1 - dampening, s.weight_decay};
  }
  std::array<bool, 2> flags(const UpdateStep& s) const { return {s.applied == 0, nesterov}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [lr, keep, fresh, decay] = e.numbers;
    const auto& [decays, first, looks_ahead] = e.flags;
    const auto& [old] = e.states;
    const auto g = where(decays, e.g + decay * e.p, e.g);
    const auto m = where(first, g, keep * old + fresh * g);
    return updated(e.p - lr * where(looks_ahead, g + keep * m, m), m);
  }
  std::optional<OptionMisfit> misfit() const;
  UpdateRule rule() const;
};

}  // namespace aloft::optim
