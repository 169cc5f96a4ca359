// Adam (Kingma and Ba 2014) with L2 regularisation, as torch.optim.Adam, with its defaults: a
// weight decay holds for every parameter, norms and biases too.
#pragma once

#include "optim/adam_moments.h"
#include "optim/spec.h"

namespace aloft::optim {

// Adam.
struct Adam {
  double lr = 1e-3;  // base rate, times the schedule's factor
  // Weights of the old means of gradients and of their squares, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;        // added to the root of the mean square
  double weight_decay = 0;  // L2, added to the gradient
  // As OptimizerSpec's field of this name (optim/spec.h):
  double clip_norm = 0;
  scalar::ScheduleRule schedule = {};
  std::vector<ParameterGroup> groups = {};
  StateFormat master = StateFormat::F32;
  UpdateTime update = UpdateTime::Late;
  Decay decay = {};  // everything; kWeightsDecay leaves out norms and biases
  StateFormat states = StateFormat::F32;
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() { return adam_options<Adam>(); }
  static constexpr auto kStates = kAdamStates;
  static constexpr auto kNotNegative = kAdamSquares;
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
    const auto& [fresh1, keep2, fresh2, root, eps, rate, decay] = e.numbers;
    const auto& [decays] = e.flags;
    const auto g = where(decays, e.g + decay * e.p, e.g);
    const auto [m, v] = adam_moments(g, e.states, fresh1, keep2, fresh2);
    return updated(e.p - rate * m / (sqrt(v) / root + eps), m, v);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
