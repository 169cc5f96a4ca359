// Adadelta (Zeiler 2012): steps in the units of the weights, by the means of squared steps and of
// squared gradients; L2 regularisation; as torch.optim.Adadelta, with its defaults.
#pragma once

#include <array>
#include <string_view>

#include "optim/formula.h"
#include "optim/spec.h"

namespace aloft::optim {

// Adadelta.
struct Adadelta {
  double lr = 1;            // factor of each step, times the schedule's
  double rho = 0.9;         // how slowly both means forget, in [0, 1)
  double eps = 1e-6;        // added to both means
  double weight_decay = 0;  // L2, added to the gradient
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() {
    return FieldList{option("rho", &Adadelta::rho, {0, 1, true}, "decay of both means of squares",
                            "the means go on, and forget faster or slower"),
                     option("eps", &Adadelta::eps, {0, 1}, "added to both means of squares",
                            "the means go on; small gradients move weights more or less")};
  }
  static constexpr std::array<std::string_view, 2> kStates = {"square_avg", "acc_delta"};
  static constexpr std::array<std::string_view, 2> kNotNegative = {"square_avg", "acc_delta"};
  static constexpr std::array<std::string_view, 5> kNumbers = {"rho", "(1 - rho)", "eps", "lr",
                                                               "weight_decay"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  std::array<double, 5> numbers(const UpdateStep& s) const {
    return {rho, 1 - rho, eps, s.lr, s.weight_decay};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [keep, fresh, eps, lr, decay] = e.numbers;
    const auto& [decays] = e.flags;
    const auto& [squares, steps] = e.states;
    const auto g = where(decays, e.g + decay * e.p, e.g);
    const auto v = keep * squares + fresh * (g * g);
    const auto d = sqrt(steps + eps) / sqrt(v + eps) * g;
    return updated(e.p - lr * d, v, keep * steps + fresh * (d * d));
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
