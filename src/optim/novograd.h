// NovoGrad (Ginsburg et al. 2019, "Stochastic gradient methods with layer-wise adaptive moments",
// algorithm 1): a momentum of gradients that are each divided by a fading norm of their tensor's,
// one number a tensor.
#pragma once

#include <array>
#include <cmath>

#include "optim/adam_moments.h"
#include "optim/spec.h"

namespace aloft::optim {

// NovoGrad.
struct NovoGrad {
  double lr = 1e-2;  // base rate, times the schedule's factor
  // Weights of the old sum of directions and of the old mean of the norm's square, in [0, 1).
  double beta1 = 0.95, beta2 = 0.98;
  double eps = 1e-8;  // added to the norm
  // What else NVIDIA's FusedNovoGrad has. The momentum is of gradients that are divided by their
  // norm, the decay with them; false: of gradients as they are, and the newest norm divides it.
  bool reg_inside_moment = true;
  bool bias_correction = false;  // the start at 0 is taken off momentum and norm
  bool grad_averaging = false;   // the momentum is a mean; false: a fading sum
  bool init_zero = false;        // the norm's mean begins at 0, not at the first norm
  double weight_decay = 0;       // share of the weight in the direction
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() {
    constexpr std::string_view kForget = "the moments go on, and forget faster or slower";
    return FieldList{
        option("beta1", &NovoGrad::beta1, {0, 1, true}, "decays of the moments", kForget, "betas"),
        option("beta2", &NovoGrad::beta2, {0, 1, true}, "decay of the norm's mean", kForget,
               "betas"),
        option("eps", &NovoGrad::eps, {0, 1}, "added to the tensor's norm",
               "the moments go on; small gradients move weights more or less"),
        option("reg_inside_moment", &NovoGrad::reg_inside_moment, {},
               "norm and weight decay are within the momentum, not beside it",
               "the momentum goes on, and is one of gradients of another size"),
        option("bias_correction", &NovoGrad::bias_correction, {},
               "the start at 0 is taken off momentum and norm", "steps are of another size"),
        option("grad_averaging", &NovoGrad::grad_averaging, {},
               "the momentum is a mean of gradients, not a fading sum",
               "the momentum goes on, and its newest gradients weigh otherwise"),
        option("init_zero", &NovoGrad::init_zero, {},
               "the mean of the norm's square begins at 0, not at the first norm's",
               "only an optimizer that begins reads it")};
  }
  static constexpr std::array<std::string_view, 1> kStates = {"exp_avg"};
  static constexpr std::array<std::string_view, 1> kTensorStates = {"norm_exp_avg_sq"};
  static constexpr auto kNotNegative = kTensorStates;
  static constexpr std::array<std::string_view, 8> kNumbers = {
      "lr",
      "beta1",
      "(grad_averaging ? 1 - beta1 : 1)",
      "m_share",
      "(reg_inside_moment ? weight_decay : 0)",
      "(reg_inside_moment ? 0 : weight_decay)",
      "first step",
      "v_share"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  static constexpr std::array<std::string_view, 4> kDefinitions = {
      "m_share = bias_correction ? 1 - beta1^t : 1",
      "v_share = bias_correction ? sqrt(1 - beta2^t) : 1",
      "norm_exp_avg_sq' = (first step and not init_zero ? norm(g)^2 : "
      "beta2 * norm_exp_avg_sq + (1 - beta2) * norm(g)^2)",
      "size = sqrt(norm_exp_avg_sq') / v_share + eps"};
  static constexpr std::array<std::string_view, 1> kSquares = {"g"};
  static constexpr std::array<std::string_view, 2> kTensorNumbers = {
      "(reg_inside_moment ? size : 1)", "(reg_inside_moment ? 1 : size)"};
  std::array<double, 8> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    return {s.lr,
            beta1,
            grad_averaging ? 1 - beta1 : 1,
            bias_correction ? c.mean : 1,
            reg_inside_moment ? s.weight_decay : 0,
            reg_inside_moment ? 0 : s.weight_decay,
            s.applied == 0 ? 1.0 : 0.0,
            bias_correction ? c.root : 1};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  std::array<double, 1> tensor_states(const std::array<double, 1>& sums,
                                      const std::array<double, 8>& numbers,
                                      const std::array<double, 1>& before) const {
    const bool begins = numbers[6] != 0 && !init_zero;
    return {begins ? sums[0] : beta2 * before[0] + (1 - beta2) * sums[0]};
  }
  std::array<double, 2> tensor_numbers(const std::array<double, 1>&,
                                       const std::array<double, 8>& numbers, bool,
                                       const std::array<double, 1>& states) const {
    const double size = std::sqrt(states[0]) / numbers[7] + eps;
    return {reg_inside_moment ? size : 1, reg_inside_moment ? 1 : size};
  }
  template <class E>
  static constexpr auto squares(const E& e) {
    return std::tuple(e.g);
  }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [lr, keep, fresh, m_share, added, decay, first, v_share] = e.numbers;
    const auto& [decays] = e.flags;
    const auto& [m_before] = e.states;
    const auto& [size_within, size_beside] = e.tensor;
    const auto g = e.g / size_within;
    const auto m = keep * m_before + fresh * where(decays, g + added * e.p, g);
    const auto u = m / m_share / size_beside;
    return updated(e.p - lr * where(decays, u + decay * e.p, u), m);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
