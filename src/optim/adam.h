// Adam (Kingma and Ba 2014) with L2 regularisation, as torch.optim.Adam, with its defaults: a
// weight decay holds for every parameter, norms and biases too.
#pragma once

#include "optim/adam_moments.h"
#include "optim/spec.h"

namespace aloft::optim {

// Inside: the formula (optim/formula.h), of AMSGrad where kLargest.
template <bool kLargest>
struct AdamFormula {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  static constexpr std::string_view kName = kLargest ? "adam_amsgrad" : "adam";
  static auto fields() { return adam_options<AdamFormula>(); }
  static constexpr auto kStates = only_if<kLargest>(kAmsGradStates, kAdamStates);
  static constexpr auto kNotNegative = only_if<kLargest>(kAmsGradSquares, kAdamSquares);
  static constexpr bool kNeedsWholeStates = kLargest;
  static constexpr std::array<std::string_view, 7> kNumbers = {
      "(1 - beta1)",          "beta2",       "(1 - beta2)", "sqrt(1 - beta2^t)", "eps",
      "(lr / (1 - beta1^t))", "weight_decay"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  std::array<double, 7> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    return {1 - beta1, beta2, 1 - beta2, c.root, eps, s.lr / c.mean, s.weight_decay};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& decay = std::get<6>(e.numbers);
    const auto& [decays] = e.flags;
    return adam_step<kLargest>(e, e.p, where(decays, e.g + decay * e.p, e.g));
  }
};

// Adam.
struct Adam {
  double lr = 1e-3;  // base rate, times the schedule's factor
  // Weights of the old means of gradients and of their squares, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;        // added to the root of the mean square
  bool amsgrad = false;     // by the largest mean square so far (Reddi et al. 2018)
  double weight_decay = 0;  // L2, added to the gradient
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: its options, and the formulas of which they choose one.
  using Formulas = std::tuple<AdamFormula<false>, AdamFormula<true>>;
  static auto fields() { return amsgrad_options<Adam>(); }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
