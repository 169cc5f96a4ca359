// BertAdam (of NVIDIA's and Hugging Face's first BERT training): Adam without the corrections of
// its first steps, decoupled weight decay, and gradients clipped tensor by tensor.
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "optim/adam_moments.h"
#include "optim/spec.h"

namespace aloft::optim {

// BertAdam.
struct BertAdam {
  double lr = 1e-3;  // base rate, times the schedule's factor
  // Weights of the old means of gradients and of their squares, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-6;           // added to the root of the mean square
  double max_grad_norm = 1;    // largest L2 norm of each tensor's gradient; 0, -1: any
  double weight_decay = 1e-2;  // share of the weight in the direction
#define ALOFT_OWN_MAX_GRAD_NORM
#include "optim/shared_options.inc"
#undef ALOFT_OWN_MAX_GRAD_NORM
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h), and that clip_norm has no second name.
  static constexpr bool kOwnMaxGradNorm = true;
  static auto fields() {
    return adam_options<BertAdam>(option("max_grad_norm", &BertAdam::max_grad_norm, {-1, 1e6},
                                         "largest norm of each tensor's gradient; 0 or -1: any",
                                         "gradients are clipped otherwise"));
  }
  static constexpr auto kStates = kAdamStates;
  static constexpr auto kNotNegative = kAdamSquares;
  static constexpr std::array<std::string_view, 6> kNumbers = {
      "(1 - beta1)", "beta2", "(1 - beta2)", "eps", "lr", "weight_decay"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  static constexpr std::array<std::string_view, 1> kSquares = {"g"};
  static constexpr std::array<std::string_view, 1> kTensorNumbers = {
      "(max_grad_norm > 0 ? min(1, max_grad_norm / (norm(g) + 1e-6)) : 1)"};
  std::array<double, 6> numbers(const UpdateStep& s) const {
    return {1 - beta1, beta2, 1 - beta2, eps, s.lr, s.weight_decay};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  // As torch.nn.utils.clip_grad_norm_ has it.
  std::array<double, 1> tensor_numbers(const std::array<double, 1>& sums) const {
    const double share = max_grad_norm / (std::sqrt(sums[0]) + 1e-6);
    return {max_grad_norm > 0 && share < 1 ? share : 1};
  }
  template <class E>
  static constexpr auto squares(const E& e) {
    return std::tuple(e.g);
  }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [fresh1, keep2, fresh2, eps, lr, decay] = e.numbers;
    const auto& [decays] = e.flags;
    const auto& [share] = e.tensor;
    const auto [m, v] = adam_moments(e.g * share, e.states, fresh1, keep2, fresh2);
    const auto u = m / (sqrt(v) + eps);
    return updated(e.p - lr * where(decays, u + decay * e.p, u), m, v);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
