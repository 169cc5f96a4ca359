// NovoGrad (Ginsburg et al. 2019, "Stochastic gradient methods with layer-wise adaptive moments",
// algorithm 1): a momentum of gradients that are each divided by a fading norm of their tensor's,
// one number a tensor.
#pragma once

#include "optim/spec.h"
#include "optim/tensor_formula.h"

namespace aloft::optim {

// NovoGrad.
struct NovoGrad {
  double lr = 1e-2;  // base rate, times the schedule's factor
  // Weights of the old sum of directions and of the old mean of the norm's square, in [0, 1).
  double beta1 = 0.95, beta2 = 0.98;
  double eps = 1e-8;        // added to the norm
  double weight_decay = 0;  // share of the weight in the direction
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/tensor_formula.h).
  static auto fields() {
    constexpr std::string_view kForget = "the moments go on, and forget faster or slower";
    return FieldList{
        option("beta1", &NovoGrad::beta1, {0, 1, true}, "decays of the moments", kForget, "betas"),
        option("beta2", &NovoGrad::beta2, {0, 1, true}, "decay of the norm's mean", kForget,
               "betas"),
        option("eps", &NovoGrad::eps, {0, 1}, "added to the tensor's norm",
               "the moments go on; small gradients move weights more or less")};
  }
  static constexpr std::array<std::string_view, 2> kStates = {"exp_avg", "norm_exp_avg_sq"};
  static constexpr double kLeastStates = 1;
  static constexpr std::array<std::string_view, 3> kNumbers = {"lr", "weight_decay", "first step"};
  std::array<double, 3> numbers(const UpdateStep& s) const {
    return {s.lr, s.weight_decay, s.applied == 0 ? 1.0 : 0.0};
  }
  static Shape state_shape(std::size_t k, const Shape& parameter, bool) {
    return k == 0 ? parameter : Shape{};
  }
  // optim/equations.h
  static constexpr std::array<std::string_view, 3> kEquations = {
      "norm_exp_avg_sq' = (first step ? norm(g)^2 : "
      "beta2 * norm_exp_avg_sq + (1 - beta2) * norm(g)^2)",
      "exp_avg' = beta1 * exp_avg + g / (sqrt(norm_exp_avg_sq') + eps) + "
      "(decays ? weight_decay * p : 0)",
      "p' = p - lr * exp_avg'"};
  template <class E>
  auto step(const E& e) const {
    const auto& [lr, decay, first] = e.numbers;
    const auto& [m_before, v_before] = e.states;
    const auto square = squared_norm(e.g);
    const auto v = where(greater(first, 0.0), square, beta2 * v_before + (1 - beta2) * square);
    const auto own = e.g / (sqrt(v) + eps);
    const auto m = beta1 * m_before + (e.decays ? own + decay * e.p : own);
    return updated(e.p - lr * m, m, v);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
