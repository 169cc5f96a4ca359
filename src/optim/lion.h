// Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2): steps of
// one size along the sign of a mean of gradients, with decoupled weight decay. It keeps one moment,
// half of AdamW's memory; its authors take a rate 3 to 10 times smaller than AdamW's, and a weight
// decay as many times larger.
#pragma once

#include <array>
#include <string_view>

#include "optim/formula.h"
#include "optim/spec.h"

namespace aloft::optim {

// Lion.
struct Lion {
  double lr = 1e-4;                  // base rate, times the schedule's factor
  double beta1 = 0.9, beta2 = 0.99;  // of the mean that is stepped along; of the one that is kept
  double weight_decay = 0;           // shrinks the weight by lr * weight_decay
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() {
    constexpr std::string_view kForget = "the moment goes on, and forgets faster or slower";
    return FieldList{
        option("beta1", &Lion::beta1, {0, 1, true}, "decay of the mean that is stepped along",
               kForget, "betas"),
        option("beta2", &Lion::beta2, {0, 1, true}, "decay of the moment", kForget, "betas")};
  }
  static constexpr std::array<std::string_view, 1> kStates = {"exp_avg"};
  static constexpr std::array<std::string_view, 6> kNumbers = {
      "beta1", "(1 - beta1)", "beta2", "(1 - beta2)", "lr", "(1 - lr * weight_decay)"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  std::array<double, 6> numbers(const UpdateStep& s) const {
    return {beta1, 1 - beta1, beta2, 1 - beta2, s.lr, 1 - s.lr * s.weight_decay};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [keep1, fresh1, keep2, fresh2, lr, shrink] = e.numbers;
    const auto& [decays] = e.flags;
    const auto& [m] = e.states;
    const auto p = where(decays, e.p * shrink, e.p);
    return updated(p - lr * sign(keep1 * m + fresh1 * e.g), keep2 * m + fresh2 * e.g);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
