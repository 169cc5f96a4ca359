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
  double eps = 1e-6;  // added to the root of the mean square
  // What else NVIDIA's FusedLAMB has. The decay is part of the direction; false: it is added to the
  // gradient, and so part of the moments.
  bool adam_w_mode = true;
  bool bias_correction = true;  // the moments' start at 0 is taken off them
  bool grad_averaging = true;   // the momentum is a mean of gradients; false: a fading sum
  bool use_nvlamb = true;       // also tensors without decay have a rate by their norm
  double weight_decay = 1e-2;   // share of the weight in the direction
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() {
    return adam_options<Lamb>(
        option("adam_w_mode", &Lamb::adam_w_mode, {},
               "the weight decay is part of the direction, and is not added to gradients",
               "weights decay otherwise"),
        option("bias_correction", &Lamb::bias_correction, {},
               "the moments' start at 0 is taken off them", "steps are of another size"),
        option("grad_averaging", &Lamb::grad_averaging, {},
               "the momentum is a mean of gradients, not a fading sum",
               "the momentum goes on, and its newest gradients weigh otherwise"),
        option("use_nvlamb", &Lamb::use_nvlamb, {},
               "also tensors without weight decay have a rate by their norm",
               "tensors without weight decay move by steps of another size"));
  }
  static constexpr auto kStates = kAdamStates;
  static constexpr auto kNotNegative = kAdamSquares;
  static constexpr std::array<std::string_view, 10> kNumbers = {"(1 - beta1)",
                                                                "beta2",
                                                                "(1 - beta2)",
                                                                "v_share",
                                                                "eps",
                                                                "m_share",
                                                                "lr",
                                                                "g_share",
                                                                "(adam_w_mode ? 0 : weight_decay)",
                                                                "(adam_w_mode ? weight_decay : 0)"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  static constexpr std::array<std::string_view, 3> kDefinitions = {
      "m_share = bias_correction ? 1 - beta1^t : 1",
      "v_share = bias_correction ? sqrt(1 - beta2^t) : 1",
      "g_share = grad_averaging ? 1 : 1 / (1 - beta1)"};
  static constexpr std::array<std::string_view, 2> kSquares = {"p", "u"};
  static constexpr std::array<std::string_view, 1> kTensorNumbers = {
      "((use_nvlamb or decays and weight_decay > 0) and norm(p) > 0 and norm(u) > 0 ? "
      "norm(p) / norm(u) : 1)"};
  std::array<double, 10> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    return {1 - beta1,
            beta2,
            1 - beta2,
            bias_correction ? c.root : 1,
            eps,
            bias_correction ? c.mean : 1,
            s.lr,
            grad_averaging ? 1 : 1 / (1 - beta1),
            adam_w_mode ? 0 : s.weight_decay,
            adam_w_mode ? s.weight_decay : 0};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  // 1 where a norm is 0: weights that begin at 0 could never leave it.
  std::array<double, 1> tensor_numbers(const std::array<double, 2>& sums,
                                       const std::array<double, 10>& numbers, bool decays) const {
    const bool has_rate = use_nvlamb || (decays && (numbers[8] > 0 || numbers[9] > 0));
    return {has_rate && sums[0] > 0 && sums[1] > 0 ? std::sqrt(sums[0]) / std::sqrt(sums[1]) : 1.0};
  }
  // u, the direction before it is scaled, and the new moments.
  template <class E>
  static constexpr auto direction(const E& e) {
    const auto& [fresh1, keep2, fresh2, root, eps, mean, lr, scale, added, decay] = e.numbers;
    const auto& [decays] = e.flags;
    const auto& [old_m, old_v] = e.states;
    const auto g = where(decays, e.g + added * e.p, e.g);
    const auto m = old_m + fresh1 * (scale * g - old_m);
    const auto v = keep2 * old_v + fresh2 * (g * g);
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
