// Adam with decoupled weight decay (Loshchilov and Hutter 2017), as torch.optim.AdamW, with its
// defaults: a weight decay holds for every parameter, norms and biases too.
#pragma once

#include "optim/adam_moments.h"
#include "optim/spec.h"

namespace aloft::optim {

// Inside: the formula (optim/formula.h), of AMSGrad where kLargest.
template <bool kLargest>
struct AdamWFormula {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  static constexpr std::string_view kName = kLargest ? "adamw_amsgrad" : "adamw";
  static auto fields() { return adam_options<AdamWFormula>(); }
  static constexpr auto kStates = only_if<kLargest>(kAmsGradStates, kAdamStates);
  static constexpr auto kNotNegative = only_if<kLargest>(kAmsGradSquares, kAdamSquares);
  static constexpr bool kNeedsWholeStates = kLargest;
  static constexpr std::array<std::string_view, 7> kNumbers = {"(1 - beta1)",
                                                               "beta2",
                                                               "(1 - beta2)",
                                                               "sqrt(1 - beta2^t)",
                                                               "eps",
                                                               "(lr / (1 - beta1^t))",
                                                               "(1 - lr * weight_decay)"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  std::array<double, 7> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    return {1 - beta1, beta2, 1 - beta2, c.root, eps, s.lr / c.mean, 1 - s.lr * s.weight_decay};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& shrink = std::get<6>(e.numbers);
    const auto& [decays] = e.flags;
    return adam_step<kLargest>(e, where(decays, e.p * shrink, e.p), e.g);
  }
};

// AdamW.
struct AdamW {
  double lr = 1e-3;  // base rate, times the schedule's factor
  // Weights of the old means of gradients and of their squares, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;           // added to the root of the mean square
  bool amsgrad = false;        // by the largest mean square so far (Reddi et al. 2018)
  double weight_decay = 1e-2;  // shrinks the weight by lr * weight_decay
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: its options, and the formulas of which they choose one.
  using Formulas = std::tuple<AdamWFormula<false>, AdamWFormula<true>>;
  static auto fields() { return amsgrad_options<AdamW>(); }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
