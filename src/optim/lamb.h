// LAMB (You et al. 2019, "Large batch optimization for deep learning", algorithm 2): Adam's
// direction with decoupled weight decay, in each tensor scaled to the norm of the tensor.
#pragma once

#include "optim/adam_moments.h"
#include "optim/spec.h"

namespace aloft::optim {

// LAMB.
struct Lamb {
  double lr = 1e-3;  // base rate, times the schedule's factor
  // Weights of the old means of gradients and of their squares, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-6;           // added to the root of the mean square
  double weight_decay = 1e-2;  // share of the weight in the direction
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() { return adam_options<Lamb>(); }
  static constexpr auto kStates = kAdamStates;
  static constexpr auto kNotNegative = kAdamSquares;
  static constexpr std::array<std::string_view, 8> kNumbers = {
      "(1 - beta1)", "beta2",         "(1 - beta2)", "sqrt(1 - beta2^t)",
      "eps",         "(1 - beta1^t)", "lr",          "weight_decay"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  static constexpr std::array<std::string_view, 2> kSquares = {"p", "u"};
  static constexpr std::array<std::string_view, 1> kTensorNumbers = {
      "(norm(p) > 0 and norm(u) > 0 ? norm(p) / norm(u) : 1)"};
  std::array<double, 8> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    return {1 - beta1, beta2, 1 - beta2, c.root, eps, c.mean, s.lr, s.weight_decay};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  // 1 where a norm is 0: weights that begin at 0 could never leave it.
  static std::array<double, 1> tensor_numbers(const std::array<double, 2>& sums) {
    return {sums[0] > 0 && sums[1] > 0 ? std::sqrt(sums[0]) / std::sqrt(sums[1]) : 1.0};
  }
  // u, the direction before it is scaled, and the new moments.
  template <class E>
  static constexpr auto direction(const E& e) {
    const auto& [fresh1, keep2, fresh2, root, eps, mean, lr, decay] = e.numbers;
    const auto& [decays] = e.flags;
    const auto [m, v] = adam_moments(e.g, e.states, fresh1, keep2, fresh2);
    const auto u = m / mean / (sqrt(v) / root + eps);
    return std::tuple(where(decays, u + decay * e.p, u), m, v);
  }
  template <class E>
  static constexpr auto squares(const E& e) {
    return std::tuple(e.p, std::get<0>(direction(e)));
  }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& lr = std::get<6>(e.numbers);
    const auto& [ratio] = e.tensor;
    const auto [u, m, v] = direction(e);
    return updated(e.p - lr * ratio * u, m, v);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
