// NAdam (Dozat 2016, "Incorporating Nesterov momentum into Adam"): Adam one step ahead, with a
// momentum that grows at first; L2 or decoupled decay; as torch.optim.NAdam, with its defaults.
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "optim/adam_moments.h"
#include "optim/spec.h"

namespace aloft::optim {

// NAdam.
struct NAdam {
  double lr = 2e-3;  // base rate, times the schedule's factor
  // Weights of the old means of gradients and of their squares, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;             // added to the root of the mean square
  double momentum_decay = 4e-3;  // how soon the momentum is whole; 0: half of beta1 for good
  bool decoupled_decay = false;  // the decay shrinks the weight, and is not added to the gradient
  double weight_decay = 0;       // L2, or decoupled
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() {
    return decoupled_adam_options<NAdam>(
        option("momentum_decay", &NAdam::momentum_decay, {0, 1}, "how soon the momentum is beta1",
               "the moments go on, and weigh otherwise in the step"));
  }
  static constexpr auto kStates = kAdamStates;
  static constexpr auto kNotNegative = kAdamSquares;
  static constexpr std::array<std::string_view, 9> kNumbers = {
      "(1 - beta1)",
      "beta2",
      "(1 - beta2)",
      "sqrt(1 - beta2^t)",
      "eps",
      "(lr * (1 - mu) / (1 - mu_all))",
      "(lr * mu_next / (1 - mu_all * mu_next))",
      kDecayAdded,
      kDecayShrinks};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  static constexpr std::array<std::string_view, 3> kDefinitions = {
      "mu = beta1 * (1 - 0.5 * 0.96^(t * momentum_decay))",
      "mu_next = beta1 * (1 - 0.5 * 0.96^((t + 1) * momentum_decay))",
      "mu_all = product for i from 1 to t of beta1 * (1 - 0.5 * 0.96^(i * momentum_decay))"};
  std::array<double, 9> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    const DecayOf decay(*this, s);
    const double mu = momentum(s.applied + 1), next = momentum(s.applied + 2);
    const double all = product(s.applied + 1);
    return {1 - beta1,
            beta2,
            1 - beta2,
            c.root,
            eps,
            s.lr * (1 - mu) / (1 - all),
            s.lr * next / (1 - all * next),
            decay.added,
            decay.shrink};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [fresh1, keep2, fresh2, root, eps, rate_g, rate_m, decay, shrink] = e.numbers;
    const auto& [decays] = e.flags;
    const auto g = where(decays, e.g + decay * e.p, e.g);
    const auto p = where(decays, e.p * shrink, e.p);
    const auto [m, v] = adam_moments(g, e.states, fresh1, keep2, fresh2);
    return updated(p - (rate_g * g + rate_m * m) / (sqrt(v) / root + eps), m, v);
  }
  // Of update t, from 1 on.
  double momentum(std::int64_t t) const {
    return beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * momentum_decay));
  }
  // Of all momentums up to t; what is left of it behind some hundreds changes 1 - it no more.
  double product(std::int64_t t) const {
    double all = 1;
    for (std::int64_t i = 1; i <= t && all > 1e-18; ++i) all *= momentum(i);
    return all;
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
