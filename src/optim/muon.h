// Muon (Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"): of a
// matrix the momentum is made orthogonal by five steps of a Newton-Schulz iteration, so that all
// directions move alike; as torch.optim.Muon, with its defaults, but for the products, which are
// of fp32 unless bf16_products asks for torch's. What is no matrix, tables and heads are updated by
// AdamW.
#pragma once

#include <algorithm>
#include <cmath>

#include "optim/adam_moments.h"
#include "optim/equations.h"
#include "optim/spec.h"
#include "optim/tensor_formula.h"

namespace aloft::optim {

// Muon.
struct Muon {
  double lr = 1e-3;        // base rate, times the schedule's factor
  double momentum = 0.95;  // weight of the old mean of gradients
  bool nesterov = true;    // one step ahead
  int ns_steps = 5;        // of the iteration: 5, no other (E0814)
  // Steps are of the size of AdamW's (0.2 times the root of the longer side, Liu et al. 2025), and
  // not of the root of height over width.
  bool match_adamw = false;
  // The iteration is computed in bf16, as torch does, and not in fp32: faster where a processor has
  // such products, and directions are rounded as bf16 rounds.
  bool bf16_products = false;
  // Of what is no matrix: its rate, as a share of lr, and AdamW's numbers.
  double rest_rate = 1, beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;  // shrinks the weight by its rate * weight_decay
  // Name patterns of matrices that are taken for none.
  std::vector<std::string> rest = {"*wte*", "*wpe*", "*embed*", "*head*"};
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/tensor_formula.h).
  static auto fields() {
    constexpr std::string_view kForget = "the moments go on, and forget faster or slower";
    constexpr std::string_view kSize = "steps are of another size";
    return FieldList{
        option("momentum", &Muon::momentum, {0, 1, true}, "weight of the old mean of gradients",
               kForget),
        option("nesterov", &Muon::nesterov, {}, "Nesterov's momentum: one step ahead",
               "the mean of gradients goes on, and is applied another way"),
        option("match_adamw", &Muon::match_adamw, {}, "steps of matrices of the size of AdamW's",
               kSize),
        option("bf16_products", &Muon::bf16_products, {},
               "the momentum is made orthogonal in bf16, as torch does",
               "directions are rounded otherwise"),
        option("rest_rate", &Muon::rest_rate, {0, 1e6},
               "rate of what is no matrix (by AdamW), as a share of lr", kSize),
        option("beta1", &Muon::beta1, {0, 1, true}, "decays of the moments", kForget, "betas"),
        option("beta2", &Muon::beta2, {0, 1, true}, "decay of the second moment", kForget, "betas"),
        option("eps", &Muon::eps, {0, 1}, "added to the root of the second moment",
               "the moments go on; small gradients move weights more or less")};
  }
  static constexpr auto kStates = kAdamStates;
  static constexpr double kLeastStates = 1;
  // The first three of matrices, the others of the rest.
  static constexpr std::array<std::string_view, 10> kNumbers = {"lr",
                                                                "(1 - lr * weight_decay)",
                                                                "(1 - momentum)",
                                                                "(1 - beta1)",
                                                                "beta2",
                                                                "(1 - beta2)",
                                                                "sqrt(1 - beta2^t)",
                                                                "eps",
                                                                "(rest lr / (1 - beta1^t))",
                                                                "(1 - rest lr * weight_decay)"};
  std::array<double, 10> numbers(const UpdateStep& s) const {
    const AdamCorrections c(*this, s.applied);
    const double rest_lr = s.lr * rest_rate;
    return {s.lr,
            1 - s.lr * s.weight_decay,
            1 - momentum,
            1 - beta1,
            beta2,
            1 - beta2,
            c.root,
            eps,
            rest_lr / c.mean,
            1 - rest_lr * s.weight_decay};
  }
  static constexpr std::array<std::string_view, 12> kEquations = {
      kOfMatrices,
      "exp_avg' = exp_avg + (1 - momentum) * (g - exp_avg)",
      "m = (nesterov ? g + momentum * (exp_avg' - g) : exp_avg')",
      "u = m / max(norm(m), 1e-7)  # u and s are bf16 where bf16_products is true",
      "5 times: s = u @ u^T; u = 3.4445 * u + (-4.775 * s + 2.0315 * s @ s) @ u",
      "size = (match_adamw ? 0.2 * sqrt(max(height, width)) : sqrt(max(1, height / width)))",
      "p' = (decays ? p * (1 - lr * weight_decay) : p) - lr * size * u",
      kOfOthers,
      "# what is no matrix, and matrices whose name fits a pattern of rest",
      "exp_avg' = exp_avg + (1 - beta1) * (g - exp_avg)",
      "exp_avg_sq' = beta2 * exp_avg_sq + (1 - beta2) * g^2",
      "p' = (decays ? p * (1 - lr * rest_rate * weight_decay) : p) "
      "- lr * rest_rate / (1 - beta1^t) * exp_avg' / (sqrt(exp_avg_sq') / sqrt(1 - beta2^t) + "
      "eps)"};
  static bool is_matrix(const Shape& shape, bool is_rest) { return shape.rank() == 2 && !is_rest; }
  static Shape state_shape(std::size_t k, const Shape& parameter, bool is_rest) {
    return k == 1 && is_matrix(parameter, is_rest) ? kNotKept : parameter;
  }
  template <class E>
  auto step(const E& e) const {
    const auto& [lr, shrink, fresh, fresh1, keep2, fresh2, root, eps, rest_rate, rest_shrink] =
        e.numbers;
    const auto& [m_before, v_before] = e.states;
    if (is_matrix(e.shape, e.is_rest)) {
      const auto m = m_before + fresh * (e.g - m_before);
      const auto u = orthogonal(nesterov ? e.g + momentum * (m - e.g) : m, e.shape);
      const auto p = e.decays ? e.p * shrink : e.p;
      return updated(p - lr * factor(e.shape) * u, m, v_before);
    }
    const auto [m, v] = adam_moments(e.g, e.states, fresh1, keep2, fresh2);
    const auto p = e.decays ? e.p * rest_shrink : e.p;
    return updated(p - rest_rate * m / (sqrt(v) / root + eps), m, v);
  }
  UpdateRule rule() const;

 private:
  static constexpr int kIterations = 5;
  // Of a step, by the matrix's sides.
  double factor(const Shape& shape) const {
    const double height = static_cast<double>(shape[0].max()),
                 width = static_cast<double>(shape[1].max());
    if (match_adamw) return 0.2 * std::sqrt(std::max(height, width));
    return std::sqrt(std::max(1.0, height / std::max(width, 1.0)));
  }
  // All singular values near 1: x -> a x + (b x x' + c (x x')^2) x, for the shorter side.
  template <class T>
  T orthogonal(const T& x, const Shape& shape) const {
    constexpr double kA = 3.4445, kB = -4.775, kC = 2.0315;
    const bool is_high = shape[0].max() > shape[1].max();
    const T length = sqrt(squared_norm(x));
    T u = x / maximum(length, 1e-7);
    if (bf16_products) u = cast(u, DType::BF16);
    // A sum of what is bf16 is rounded once, behind it.
    const auto wide = [&](const T& of) { return bf16_products ? cast(of, DType::F32) : of; };
    const auto narrow = [&](const T& of) { return bf16_products ? cast(of, DType::BF16) : of; };
    for (int i = 0; i < kIterations; ++i) {
      const T square = is_high ? matmul(u, u, true, false) : matmul(u, u, false, true);
      // Symmetric, so that it is its own transpose: written so, half of its square need be
      // computed.
      const T mixed = narrow(wide(square) * kB + wide(matmul(square, square, false, true)) * kC);
      u = narrow(wide(u) * kA + wide(is_high ? matmul(u, mixed) : matmul(mixed, u)));
    }
    return wide(u);
  }
};

}  // namespace aloft::optim
