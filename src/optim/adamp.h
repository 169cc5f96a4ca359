// AdamP (Heo et al. 2020, "AdamP: slowing down the slowdown for momentum optimizers on
// scale-invariant weights", algorithm 2): Adam, whose step loses its part along the weights where
// these show that their size does not count: where gradients stand at right angles to them, in each
// row or as a whole.
#pragma once

#include <cmath>
#include <utility>

#include "optim/adam_moments.h"
#include "optim/spec.h"
#include "optim/tensor_formula.h"

namespace aloft::optim {

// AdamP.
struct AdamP {
  double lr = 1e-3;  // base rate, times the schedule's factor
  // Weights of the old means of gradients and of their squares, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;         // added to the root of the mean square, and to norms
  double delta = 0.1;        // most cosine, times the root of the length, that is a right angle
  double decay_ratio = 0.1;  // share of the weight decay where the step loses a part
  bool nesterov = false;     // one step ahead
  double weight_decay = 0;   // shrinks the weight by lr * weight_decay
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/tensor_formula.h).
  static auto fields() {
    constexpr std::string_view kOther = "the moments go on; other steps lose a part";
    return adam_options<AdamP>(
        option("delta", &AdamP::delta, {0, 10}, "most cosine that is a right angle", kOther),
        option("decay_ratio", &AdamP::decay_ratio, {0, 1},
               "share of the weight decay where a step loses its part along the weights", kOther),
        option("nesterov", &AdamP::nesterov, {}, "one step ahead", kOther));
  }
  static constexpr auto kStates = kAdamStates;
  static constexpr double kLeastStates = 2;
  static constexpr std::array<std::string_view, 4> kNumbers = {
      "sqrt(1 - beta2^t)", "(lr / (1 - beta1^t))", "lr * weight_decay", "one"};
  std::array<double, 4> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    return {c.root, s.lr / c.mean, s.lr * s.weight_decay, 1.0};
  }
  static Shape state_shape(std::size_t, const Shape& parameter, bool) { return parameter; }
  // optim/equations.h
  static constexpr std::array<std::string_view, 10> kEquations = {
      "exp_avg' = exp_avg + (1 - beta1) * (g - exp_avg)",
      "exp_avg_sq' = beta2 * exp_avg_sq + (1 - beta2) * g^2",
      "m = (nesterov ? beta1 * exp_avg' + (1 - beta1) * g : exp_avg')",
      "u = m / (sqrt(exp_avg_sq') / sqrt(1 - beta2^t) + eps)",
      "row_cosine = |row_sum(p * g)| / ((row_norm(p) + eps) * (row_norm(g) + eps))",
      "cosine = |sum(p * g)| / ((norm(p) + eps) * (norm(g) + eps))",
      "by_rows = rank > 1 and max(row_cosine) < delta / sqrt(row_count(p))",
      "as_a_whole = rank > 1 and not by_rows and cosine < delta / sqrt(count(p))",
      "w = (by_rows ? u - p * row_sum(p * u) / (row_norm(p) + eps)^2 : "
      "(as_a_whole ? u - p * sum(p * u) / (norm(p) + eps)^2 : u))",
      "p' = (decays ? p * (1 - lr * weight_decay * (by_rows or as_a_whole ? decay_ratio : 1)) : p) "
      "- lr / (1 - beta1^t) * w"};
  template <class E>
  auto step(const E& e) const {
    const auto& [root, rate, decay, one] = e.numbers;
    const auto [m, v] = adam_moments(e.g, e.states, 1 - beta1, beta2, 1 - beta2);
    const auto plain = (nesterov ? beta1 * m + (1 - beta1) * e.g : m) / (sqrt(v) / root + eps);
    const bool may_lose = e.shape.rank() > 1 && e.shape.numel() != Dim(0);
    const auto [u, share] = may_lose ? projected(e, plain, one) : std::pair(plain, one);
    const auto p = e.decays ? e.p * (one - decay * share) : e.p;
    return updated(p - rate * u, m, v);
  }
  UpdateRule rule() const;

 private:
  // The step without its part along the weights, and the share of the weight decay: by rows where
  // every row of the gradient stands at a right angle to its row of weights, else as a whole where
  // that does; else as it is.
  template <class E, class T>
  std::pair<T, T> projected(const E& e, const T& u, const T& one) const {
    const std::int64_t rows = e.shape[0].max(), all = e.shape.max_numel();
    const auto view = [&](const T& x, std::int64_t parts) {
      return reshape(x, Shape{parts, all / parts});
    };
    const auto length = [&](const T& x) { return sqrt(squared_norm(x, 1)) + eps; };
    const auto is_right = [&](std::int64_t parts) {
      const T p = view(e.p, parts), g = view(e.g, parts);
      const T cosine = abs(sum(p * g, {1}, true)) / (length(p) * length(g));
      return less(max(cosine), delta / std::sqrt(static_cast<double>(all / parts)));
    };
    const auto without = [&](std::int64_t parts) {
      const T p = view(e.p, parts), own = view(u, parts), unit = p / length(p);
      return reshape(own - unit * sum(unit * own, {1}, true), e.shape);
    };
    const T by_rows = is_right(rows), as_whole = is_right(1);
    return {where(by_rows, without(rows), where(as_whole, without(1), u)),
            where(by_rows, one * decay_ratio, where(as_whole, one * decay_ratio, one))};
  }
};

}  // namespace aloft::optim
