// RAdam (Liu et al. 2019, "On the variance of the adaptive learning rate and beyond", algorithm 2):
// Adam without the adaptive rate while that varies too much, and then scaled by how much it still
// does; L2 or decoupled decay; as torch.optim.RAdam, with its defaults.
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "optim/adam_moments.h"
#include "optim/spec.h"

namespace aloft::optim {

// RAdam.
struct RAdam {
  double lr = 1e-3;  // base rate, times the schedule's factor
  // Weights of the old means of gradients and of their squares, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;             // added to the root of the mean square
  bool decoupled_decay = false;  // the decay shrinks the weight, and is not added to the gradient
  double weight_decay = 0;       // L2, or decoupled
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() { return decoupled_adam_options<RAdam>(); }
  static constexpr auto kStates = kAdamStates;
  static constexpr auto kNotNegative = kAdamSquares;
  static constexpr std::array<std::string_view, 8> kNumbers = {"(1 - beta1)",
                                                               "beta2",
                                                               "(1 - beta2)",
                                                               "eps",
                                                               "(lr / (1 - beta1^t))",
                                                               "(r * sqrt(1 - beta2^t))",
                                                               kDecayAdded,
                                                               kDecayShrinks};
  static constexpr std::array<std::string_view, 1> kFlags = {"n > 5"};
  static constexpr std::array<std::string_view, 3> kDefinitions = {
      "n_most = 2 / (1 - beta2) - 1", "n = n_most - 2 * t * beta2^t / (1 - beta2^t)",
      "r = (n > 5 ? sqrt((n - 4) * (n - 2) * n_most / ((n_most - 4) * (n_most - 2) * n)) : 0)"};
  std::array<double, 8> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    const DecayOf decay(*this, s);
    const double most = 2 / (1 - beta2) - 1, n = samples(s);
    const double r =
        n > kLeast ? std::sqrt((n - 4) * (n - 2) * most / ((most - 4) * (most - 2) * n)) : 0;
    return {1 - beta1, beta2, 1 - beta2, eps, s.lr / c.mean, r * c.root, decay.added, decay.shrink};
  }
  std::array<bool, 1> flags(const UpdateStep& s) const { return {samples(s) > kLeast}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [fresh1, keep2, fresh2, eps, rate, scale, decay, shrink] = e.numbers;
    const auto& [decays, rectified] = e.flags;
    const auto g = where(decays, e.g + decay * e.p, e.g);
    const auto p = where(decays, e.p * shrink, e.p);
    const auto [m, v] = adam_moments(g, e.states, fresh1, keep2, fresh2);
    return updated(p - rate * where(rectified, m * (scale / (sqrt(v) + eps)), m), m, v);
  }
  // How many gradients the mean of squares is worth by its variance: the paper's rho_t. There is a
  // variance above 4, and torch.optim takes r above 5.
  static constexpr double kLeast = 5;
  double samples(const UpdateStep& s) const {
    const double t = static_cast<double>(s.applied + 1), old = std::pow(beta2, t);
    return 2 / (1 - beta2) - 1 - 2 * t * old / (1 - old);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
