// Adamax (Kingma and Ba 2014, algorithm 2): Adam with the largest of the old gradients, which
// fades, in place of the root of their mean square; L2 regularisation; as torch.optim.Adamax, with
// its defaults.
#pragma once

#include <array>
#include <string_view>

#include "optim/adam_moments.h"
#include "optim/spec.h"

namespace aloft::optim {

// Adamax.
struct Adamax {
  double lr = 2e-3;  // base rate, times the schedule's factor
  // How slowly the mean of gradients forgets, and the largest one, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;        // added to each gradient's size
  double weight_decay = 0;  // L2, added to the gradient
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() { return adam_options_with<Adamax>("added to the size of each gradient"); }
  static constexpr std::array<std::string_view, 2> kStates = {"exp_avg", "exp_inf"};
  static constexpr std::array<std::string_view, 1> kNotNegative = {"exp_inf"};
  static constexpr std::array<std::string_view, 5> kNumbers = {
      "(1 - beta1)", "beta2", "eps", "(lr / (1 - beta1^t))", "weight_decay"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  std::array<double, 5> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    return {1 - beta1, beta2, eps, s.lr / c.mean, s.weight_decay};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [fresh, keep, eps, rate, decay] = e.numbers;
    const auto& [decays] = e.flags;
    const auto& [mean, largest] = e.states;
    const auto g = where(decays, e.g + decay * e.p, e.g);
    const auto m = mean + fresh * (g - mean);
    const auto faded = keep * largest;
    const auto size = abs(g) + eps;
    const auto u = where(faded > size, faded, size);
    return updated(e.p - rate * m / u, m, u);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
