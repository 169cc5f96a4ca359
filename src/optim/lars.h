// LARS (You, Gitman and Ginsburg 2017, "Large batch training of convolutional networks", algorithm
// 1): a momentum of gradients, which in each tensor are scaled to the norm of the tensor.
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "optim/formula.h"
#include "optim/spec.h"

namespace aloft::optim {

// LARS.
struct Lars {
  double lr = 0.1;          // base rate, times the schedule's factor
  double momentum = 0.9;    // share of the last step that is kept
  double trust = 1e-3;      // size of a step in units of the tensor's norm: eta
  double eps = 1e-8;        // added to the gradient's norm
  double weight_decay = 0;  // added to the gradient, and to its norm
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() {
    return FieldList{
        option("momentum", &Lars::momentum, {0, 1}, "share of the last step that is kept",
               "the sum of past steps goes on, and fades faster or slower"),
        option("trust", &Lars::trust, {0, 1}, "size of a step in units of the tensor's norm",
               "steps are of another size"),
        option("eps", &Lars::eps, {0, 1}, "added to the gradient's norm",
               "small gradients move weights more or less")};
  }
  static constexpr std::array<std::string_view, 1> kStates = {"momentum_buffer"};
  static constexpr std::array<std::string_view, 5> kNumbers = {"lr", "momentum", "trust", "eps",
                                                               "weight_decay"};
  static constexpr std::array<std::string_view, 0> kFlags = {};
  static constexpr std::array<std::string_view, 2> kSquares = {"p", "g"};
  static constexpr std::array<std::string_view, 1> kTensorNumbers = {
      "(norm(p) > 0 and norm(g) > 0 ? trust * norm(p) / (norm(g) + (decays ? weight_decay : 0) * "
      "norm(p) + eps) : 1)"};
  std::array<double, 5> numbers(const UpdateStep& s) const {
    return {s.lr, momentum, trust, eps, s.weight_decay};
  }
  std::array<bool, 0> flags(const UpdateStep&) const { return {}; }
  // 1 where a norm is 0: weights that begin at 0 could never leave it.
  static std::array<double, 1> tensor_numbers(const std::array<double, 2>& sums,
                                              const std::array<double, 5>& numbers, bool decays) {
    const auto& [lr, momentum, trust, eps, weight_decay] = numbers;
    if (!(sums[0] > 0 && sums[1] > 0)) return {1.0};
    const double p = std::sqrt(sums[0]), g = std::sqrt(sums[1]);
    return {trust * p / (g + (decays ? weight_decay : 0) * p + eps)};
  }
  template <class E>
  static constexpr auto squares(const E& e) {
    return std::tuple(e.p, e.g);
  }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [lr, keep, trust, eps, decay] = e.numbers;
    const auto& [decays] = e.flags;
    const auto& [old] = e.states;
    const auto& [ratio] = e.tensor;
    const auto m = keep * old + lr * ratio * where(decays, e.g + decay * e.p, e.g);
    return updated(e.p - m, m);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
