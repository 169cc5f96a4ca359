// NovoGrad (Ginsburg et al. 2019, "Stochastic gradient methods with layer-wise adaptive moments",
// algorithm 1): a momentum of gradients that are each divided by a fading norm of their tensor's,
// one number a tensor.
#pragma once

#include "optim/adam_moments.h"
#include "optim/spec.h"
#include "optim/tensor_formula.h"

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

  // Inside: the formula (optim/tensor_formula.h).
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
  static constexpr std::array<std::string_view, 2> kStates = {"exp_avg", "norm_exp_avg_sq"};
  static constexpr double kLeastStates = 1;
  static constexpr std::array<std::string_view, 5> kNumbers = {"lr", "weight_decay", "first step",
                                                               "m_share", "v_share"};
  std::array<double, 5> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    return {s.lr, s.weight_decay, s.applied == 0 ? 1.0 : 0.0, bias_correction ? c.mean : 1,
            bias_correction ? c.root : 1};
  }
  static Shape state_shape(std::size_t k, const Shape& parameter, bool) {
    return k == 0 ? parameter : Shape{};
  }
  // optim/equations.h
  static constexpr std::array<std::string_view, 8> kEquations = {
      "m_share = bias_correction ? 1 - beta1^t : 1",
      "v_share = bias_correction ? sqrt(1 - beta2^t) : 1",
      "norm_exp_avg_sq' = (first step and not init_zero ? norm(g)^2 : "
      "beta2 * norm_exp_avg_sq + (1 - beta2) * norm(g)^2)",
      "size = sqrt(norm_exp_avg_sq') / v_share + eps",
      "u = reg_inside_moment ? g / size + (decays ? weight_decay * p : 0) : g",
      "exp_avg' = beta1 * exp_avg + (grad_averaging ? 1 - beta1 : 1) * u",
      "m = exp_avg' / m_share",
      "p' = p - lr * (reg_inside_moment ? m : m / size + (decays ? weight_decay * p : 0))"};
  template <class E>
  auto step(const E& e) const {
    const auto& [lr, decay, first, m_share, v_share] = e.numbers;
    const auto& [m_before, v_before] = e.states;
    const auto square = squared_norm(e.g);
    const auto mean = beta2 * v_before + (1 - beta2) * square;
    const auto v = init_zero ? mean : where(greater(first, 0.0), square, mean);
    const auto size = (bias_correction ? sqrt(v) / v_share : sqrt(v)) + eps;
    // `x` with the decay, where it belongs there.
    const auto decayed = [&](const auto& x, bool is_here) {
      return is_here && e.decays ? x + decay * e.p : x;
    };
    const auto own = decayed(reg_inside_moment ? e.g / size : e.g, reg_inside_moment);
    const auto m = beta1 * m_before + (grad_averaging ? (1 - beta1) * own : own);
    const auto corrected = bias_correction ? m / m_share : m;
    const auto u = decayed(reg_inside_moment ? corrected : corrected / size, !reg_inside_moment);
    return updated(e.p - lr * u, m, v);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
